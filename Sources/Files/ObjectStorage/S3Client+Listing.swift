import Failures
import StoreFiles
import TusProtocol

/// Listing by pages.
extension S3Client {
  /// The most pages of a thousand objects that are read.
  private static let mostPages = 1000

  /// The size of an object that cannot be: Amazon's largest has 50 TB.
  private static let largestObject: Int64 = 1 << 50

  /// The objects whose keys begin with a text.
  ///
  /// - Throws: `s3-answer` where a page is none, goes on without end, or lists keys that were not asked for.
  package func list(_ prefix: String) throws(S3Error) -> S3Listing {
    var listing = S3Listing()
    var token: String?
    for _ in 1...Self.mostPages {
      var call = Call(method: .get, operation: "list the object storage")
      call.query = [("list-type", "2"), ("encoding-type", "url"), ("prefix", prefix)]
      if let token { call.query.append(("continuation-token", token)) }
      let answer = try send(call)
      listing.date = answer.fields["date"].flatMap { HTTPDate.parse($0) }
      guard let page = XMLElement(answer.body), page.name == "ListBucketResult" else {
        throw odd("the answer is no listing", call)
      }
      let isEncoded = page.text("EncodingType") == "url"
      for element in page.all("Contents") {
        guard let text = element.text("Key"), let key = isEncoded ? PercentEncoding.decode(text) : text,
          key.hasPrefix(prefix), key.utf8.count <= 1024, let bytes = element.text("Size").flatMap({ Int64($0) }),
          (0...Self.largestObject).contains(bytes)
        else { throw odd("the listing has an entry that cannot be", call) }
        listing.objects.append(
          S3ObjectFacts(key: key, bytes: bytes, modified: element.text("LastModified").flatMap(Self.date)))
      }
      guard page.text("IsTruncated") == "true" else { return listing }
      let next = page.text("NextContinuationToken")
      guard let next, !next.isEmpty, next.utf8.count <= 4096, next != token else {
        throw odd("the listing does not say where it goes on", call)
      }
      token = next
    }
    throw S3Error(
      .answer, operation: "list the object storage",
      detail: "more than \(Self.mostPages) pages lie under \(location(prefix))",
      hint: "Use a prefix of its own for each store.")
  }

  /// A moment as listings have it: `2009-10-12T17:50:30.000Z`.
  static func date(_ text: String) -> Timestamp? {
    let digits = text.prefix(19)
    return digits.count == 19 && text.hasSuffix("Z") ? Timestamp(digits + "Z") : nil
  }
}
