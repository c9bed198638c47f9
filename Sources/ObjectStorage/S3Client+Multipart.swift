package import Platform

/// Objects that are written in parts.
///
/// They have their keys when they are complete. The end of an upload takes no condition: real servers pass over it and replace
/// what is there.
extension S3Client {
  /// The smallest length of a part that is not the last (Amazon S3 User Guide, "Amazon S3 multipart upload limits").
  package static let shortestPart = 5 << 20

  /// The most parts that an object can have (the same).
  package static let mostParts = 10_000

  /// The longest identifier of an upload, or tag of a part, that is taken from a server.
  private static let longestIdentifier = 2048

  /// Begins to write an object.
  package func beginUpload(_ key: String) throws(S3Error) -> S3Upload {
    let call = Call(method: .post, key: key, query: [("uploads", "")], operation: "write to the object storage")
    let answer = try send(call)
    guard let root = XMLElement(answer.body), root.name == "InitiateMultipartUploadResult",
      let id = root.text("UploadId"), Self.isIdentifier(id)
    else { throw odd("the answer names no upload", call) }
    return S3Upload(key: key, id: id)
  }

  /// Writes a part.
  package func put(_ bytes: ArraySlice<UInt8>, as number: Int, of upload: S3Upload) throws(S3Error) -> S3Part {
    let call = Call(
      method: .put, key: upload.key, query: [("partNumber", "\(number)"), ("uploadId", upload.id)], body: bytes,
      operation: "write to the object storage")
    guard let tag = try send(call).fields["etag"], Self.isIdentifier(tag) else {
      throw odd("the answer has no tag of the part", call)
    }
    return S3Part(number: number, tag: tag)
  }

  /// Gives the object its key; what is there already is replaced.
  ///
  /// - Parameter bytes: how long the object is, by which it is known where the answer was lost.
  package func complete(_ upload: S3Upload, _ parts: [S3Part], bytes: Int64) throws(S3Error) {
    var text = "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
    for part in parts {
      text += "<Part><PartNumber>\(part.number)</PartNumber><ETag>\(Self.escaped(part.tag))</ETag></Part>"
    }
    text += "</CompleteMultipartUpload>"
    var call = Call(
      method: .post, key: upload.key, query: [("uploadId", upload.id)], body: Array(text.utf8)[...],
      operation: "write to the object storage")
    call.isWork = true
    for attempt in 1... {
      let answer = try send(call, accepting: [404])
      let root = XMLElement(answer.body)
      if answer.status == 404 {
        // An earlier attempt, whose answer was lost, may have done it, one of libcurl's own included.
        if try head(upload.key)?.bytes == bytes { return }
        throw refusal(answer, call)
      }
      if root?.name == "CompleteMultipartUploadResult" { break }
      // The status is sent before the server knows how it ends (Amazon S3 API Reference, "CompleteMultipartUpload").
      guard answer.word == "InternalError" || answer.word == "SlowDown",
        attempt < settings.patience.attempts
      else { throw odd("the server did not complete the upload", call) }
      waiting.pause(waiting.random(settings.patience.pause(after: attempt)))
    }
    guard try head(upload.key)?.bytes == bytes else { throw odd("the object does not have its length", call) }
  }

  /// Gives up what was written of an object; no error where there is no such upload.
  package func abort(_ upload: S3Upload) throws(S3Error) {
    let call = Call(
      method: .delete, key: upload.key, query: [("uploadId", upload.id)], operation: "remove from the object storage")
    _ = try send(call, accepting: [404])
  }

  /// The most pages of a thousand uploads that are read.
  private static let mostUploadPages = 100

  /// The uploads of keys that begin with a text which were neither completed nor given up; of very many the first.
  package func uploads(_ prefix: String) throws(S3Error) -> [S3Upload] {
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
      let isEncoded = page.text("EncodingType") == "url"
      func decoded(_ text: String) -> String? { isEncoded ? PercentEncoding.decode(text) : text }
      for element in page.all("Upload") {
        guard let key = element.text("Key").flatMap(decoded), let id = element.text("UploadId"), Self.isIdentifier(id)
        else { throw odd("the listing has an entry that cannot be", call) }
        // Some servers pass over the prefix.
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

/// An object that is being written in parts.
package struct S3Upload: Sendable, Hashable {
  /// The key that the object will have.
  package var key: String

  /// What the server calls the upload.
  package var id: String

  /// When it was begun, by the server's clock; nil where the server does not say.
  package var begun: Timestamp?

  /// An upload.
  package init(key: String, id: String, begun: Timestamp? = nil) {
    self.key = key
    self.id = id
    self.begun = begun
  }
}

/// A part of an object that was written.
package struct S3Part: Sendable, Hashable {
  /// Its number, from 1 on.
  package var number: Int

  /// What the server calls its content.
  package var tag: String
}
