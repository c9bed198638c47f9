/// A request that is not answered as it wishes, with the status and words for the client.
///
/// The words never repeat what the request said.
package struct Refusal: Error, Sendable, Hashable {
  /// The status.
  package var status: Status

  /// Why, in a half-sentence.
  package var words: String

  /// Header fields that go with the status, such as `Allow`.
  package var headers = HeaderFields()

  /// A refusal.
  package init(_ status: Status, _ words: String, headers: HeaderFields = HeaderFields()) {
    self.status = status
    self.words = words
    self.headers = headers
  }

  /// The response that says so.
  package var response: Response {
    var response = Response.text("\(status.rawValue) \(status.reason): \(words).\n", status: status)
    for field in headers.fields { response.headers.add(field.name, field.value) }
    return response
  }
}
