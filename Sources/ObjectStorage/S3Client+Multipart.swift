package import Backup
package import Platform

/// Multipart uploads.
///
/// Completion is unconditional: real servers ignore conditions and replace the object.
extension S3Client {
  /// The least length of a part, except for the last (Amazon S3 User Guide, "Amazon S3 multipart upload limits").
  package static let shortestPart = 5 << 20

  /// The most parts of an object, by the same source.
  static let mostParts = 10_000

  /// The longest upload identifier or part tag accepted.
  private static let longestIdentifier = 2048

  package func beginUpload(_ key: String) throws(BackupError) -> S3Upload {
    let call = Call(method: .post, key: key, query: [("uploads", "")], operation: "write to the object storage")
    let answer = try send(call)
    guard let root = XMLElement(answer.body), root.name == "InitiateMultipartUploadResult",
      let id = root.text("UploadId"), Self.isIdentifier(id)
    else { throw odd("the answer names no upload", call) }
    return S3Upload(key: key, id: id)
  }

  package func put(_ bytes: ArraySlice<UInt8>, as number: Int, of upload: S3Upload) throws(BackupError) -> S3Part {
    let call = Call(
      method: .put, key: upload.key, query: [("partNumber", "\(number)"), ("uploadId", upload.id)], body: bytes,
      operation: "write to the object storage")
    guard let tag = try send(call).fields["etag"], Self.isIdentifier(tag) else {
      throw odd("the answer has no tag of the part", call)
    }
    return S3Part(number: number, tag: tag)
  }

  /// Completes the upload, replacing an object.
  ///
  /// - Parameter bytes: the length, which identifies the object if the answer was lost.
  package func complete(_ upload: S3Upload, _ parts: [S3Part], bytes: Int64) throws(BackupError) {
    let list = parts.map {
      "<Part><PartNumber>\($0.number)</PartNumber><ETag>\(Self.escaped($0.tag))</ETag></Part>"
    }.joined()
    let space = "http://s3.amazonaws.com/doc/2006-03-01/"
    let text = "<CompleteMultipartUpload xmlns=\"\(space)\">\(list)</CompleteMultipartUpload>"
    let call = Call(
      method: .post, key: upload.key, query: [("uploadId", upload.id)], body: Array(text.utf8)[...], isWork: true,
      operation: "write to the object storage")
    for attempt in 1... {
      let answer = try send(call, accepting: [404])
      let root = XMLElement(answer.body)
      if answer.status == 404 {
        // An earlier attempt, perhaps libcurl's own, may have lost only its answer.
        if try head(upload.key)?.bytes == bytes { return }
        throw refusal(answer, call)
      }
      if root?.name == "CompleteMultipartUploadResult" { break }
      // The status precedes the outcome (Amazon S3 API Reference, "CompleteMultipartUpload").
      guard answer.word == "InternalError" || answer.word == "SlowDown", attempt < settings.retries.attempts else {
        throw odd("the server did not complete the upload", call)
      }
      waiting.pause(waiting.random(settings.retries.pause(after: attempt)))
    }
    guard try head(upload.key)?.bytes == bytes else { throw odd("the object does not have its length", call) }
  }

  /// Aborts an upload; a missing one is no error.
  package func abort(_ upload: S3Upload) throws(BackupError) {
    let call = Call(
      method: .delete, key: upload.key, query: [("uploadId", upload.id)], operation: "remove from the object storage")
    _ = try send(call, accepting: [404])
  }

  /// The most pages of 1,000 uploads.
  private static let mostUploadPages = 100

  /// The incomplete uploads under a prefix, up to a page limit.
  package func uploads(_ prefix: String) throws(BackupError) -> [S3Upload] {
    var uploads: [S3Upload] = []
    var last: (key: String, id: String)?
    for _ in 1...Self.mostUploadPages {
      var call = Call(
        method: .get, query: [("uploads", ""), ("encoding-type", "url"), ("prefix", prefix)],
        operation: "list the object storage")
      if let last { call.query += [("key-marker", last.key), ("upload-id-marker", last.id)] }
      let answer = try send(call)
      guard let page = XMLElement(answer.body), page.name == "ListMultipartUploadsResult" else {
        throw odd("the answer is no listing", call)
      }
      let decoded = page.keyDecoding()
      for element in page.all("Upload") {
        guard let key = element.text("Key").flatMap(decoded), let id = element.text("UploadId"), Self.isIdentifier(id)
        else { throw odd("the listing has an entry that cannot be", call) }
        // Some servers ignore the prefix.
        if key.hasPrefix(prefix) {
          uploads.append(S3Upload(key: key, id: id, begun: element.text("Initiated").flatMap(Self.date)))
        }
      }
      guard page.text("IsTruncated") == "true" else { return uploads }
      guard let key = page.text("NextKeyMarker").flatMap(decoded), let id = page.text("NextUploadIdMarker"),
        Self.isIdentifier(id), key.utf8.count <= 1024, (key, id) != last ?? ("", "")
      else { throw odd("the listing does not say where it goes on", call) }
      last = (key, id)
    }
    return uploads
  }

  private static func isIdentifier(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.count <= longestIdentifier && text.utf8.allSatisfy { (32...126).contains($0) }
  }

  private static func escaped(_ text: String) -> String {
    text.map { character in
      switch character {
      case "&": "&amp;"
      case "<": "&lt;"
      case ">": "&gt;"
      case "\"": "&quot;"
      default: String(character)
      }
    }.joined()
  }
}

package struct S3Upload: Sendable, Hashable {
  var key: String

  package var id: String

  /// The start by the server's clock, if sent.
  package var begun: Timestamp?

  package init(key: String, id: String, begun: Timestamp? = nil) {
    self.key = key
    self.id = id
    self.begun = begun
  }
}

package struct S3Part: Sendable, Hashable {
  var number: Int

  /// The ETag.
  var tag: String
}
