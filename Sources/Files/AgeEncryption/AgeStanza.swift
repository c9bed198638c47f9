/// A part of a header: the file's key wrapped for one recipient.
///
/// Source: age specification, "Recipient stanza".
struct AgeStanza: Hashable, Sendable {
  /// The recipient's type, and what it needs to know.
  var arguments: [String]

  var body: [UInt8]

  /// The lines as they stand in the header.
  var text: String {
    var text = "-> " + arguments.joined(separator: " ") + "\n"
    var rest = Substring(UnpaddedBase64.encode(body))
    // A line of full length is always followed by another, if need be by an empty one.
    while rest.utf8.count >= 64 {
      text += rest.prefix(64) + "\n"
      rest = rest.dropFirst(64)
    }
    return text + rest + "\n"
  }
}
