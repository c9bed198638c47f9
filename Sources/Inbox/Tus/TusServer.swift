package import HTTPServer
internal import Platform
internal import SystemPackage

/// A tus 1.0 server: creation (with upload), expiration, termination and checksums.
///
/// Every request but OPTIONS needs a token; a sender sees only its own uploads. Bodies are read only after their header
/// passed.
package final class TusServer: Sendable {
  package static let path = "/inbox/uploads"

  /// A shorter address for creation; GET there is a page.
  package static let shortPath = "/inbox"

  private static let extensions = "creation,creation-with-upload,expiration,termination,checksum"

  private let uploads: TusUploads
  private let router: Router

  package init(_ inbox: Inbox) {
    let uploads = TusUploads(inbox)
    self.uploads = uploads
    var router = Router()
    for path in [Self.path, Self.shortPath] {
      router.addStream(.post, path) { request, length in Self.intake { try uploads.create(request, length) } }
    }
    router.addStream(.patch, Self.path + "/{id}", .upload) { request, length, id in
      Self.intake { try uploads.append(request, length, id) }
    }
    router.add(.head, Self.path + "/{id}", .upload) { request, id in Self.answer { try uploads.look(request, id) } }
    router.add(.get, Self.path + "/{id}", .upload) { request, id in Self.answer { try uploads.receipt(request, id) } }
    router.add(.delete, Self.path + "/{id}", .upload) { request, id in Self.answer { try uploads.end(request, id) } }
    let options = Self.options(inbox.limits.bundleBytes)
    for path in [Self.path, Self.shortPath] { router.add(.options, path) { _ in options } }
    router.add(.options, Self.path + "/{id}", .upload) { _, _ in options }
    self.router = router
  }

  package func isAsked(_ request: Request) -> Bool {
    let segments = request.target.segments
    if segments == ["inbox"] { return request.method == .post || request.method == .options }
    return segments.starts(with: ["inbox", "uploads"])
  }

  /// Chooses a body's consumer; nil to collect it.
  package func intake(of request: Request, length: Int64?) -> BodyIntake? {
    guard isAsked(request) else { return nil }
    // Do not wait for a body at an address that is not an upload's.
    return router.intake(of: request, length: length) ?? (length == 0 ? nil : .refused(respond(to: request)))
  }

  package func respond(to request: Request) -> Response { Self.answer { try router.answer(to: request) } }

  private static func answer(_ make: () throws -> Response) -> Response {
    do { return stamped(try make()) } catch { return stamped(TusRefusal(error).response) }
  }

  private static func intake(_ make: () throws -> BodyIntake) -> BodyIntake {
    do { return try make() } catch { return .refused(stamped(TusRefusal(error).response)) }
  }

  /// Adds the protocol version, which every response has.
  static func stamped(_ response: Response) -> Response {
    var copy = response
    copy.headers.set(TusField.resumable, TusVersion.current)
    return copy
  }

  private static func options(_ maximum: Int64) -> Response {
    Response(
      .noContent,
      headers: [
        TusField.version: TusVersion.current, TusField.extension: extensions, TusField.maxSize: String(maximum),
        TusField.checksumAlgorithm: PartChecksum.algorithms.joined(separator: ","),
      ])
  }
}

extension PathParameter where Value == String {
  /// The identifier of an upload or bundle.
  package static var upload: PathParameter { PathParameter { InboxFolders.isID($0) ? $0 : nil } }
}

final class TusUploads: Sendable {
  private let inbox: Inbox

  init(_ inbox: Inbox) { self.inbox = inbox }

  private var records: any InboxRecords { inbox.records }

  // MARK: Who asks

  /// Authenticates the sender.
  ///
  /// - Throws: 401 without a valid token.
  private func sender(of request: Request) throws -> InboxSender {
    let parts = (request.headers["Authorization"] ?? "").split(separator: " ")
    guard parts.count == 2, parts[0].lowercased() == "bearer", let sender = try inbox.sender(of: String(parts[1]))
    else {
      throw TusRefusal(
        .unauthorized, "token-needed", "A token of this inbox is needed.", headers: ["WWW-Authenticate": "Bearer"])
    }
    return sender
  }

  private func checkVersion(_ request: Request) throws(TusRefusal) {
    guard request.headers.all(TusField.resumable) == [TusVersion.current] else {
      throw TusRefusal(
        .preconditionFailed, "version-unknown", "Only tus \(TusVersion.current) is spoken here.",
        headers: [TusField.version: TusVersion.current])
    }
  }

  /// Returns an upload of the sender.
  ///
  /// - Throws: 404 if unknown or another sender's; 410 if it ended.
  private func upload(_ id: String, of sender: InboxSender) throws -> InboxUpload {
    guard let upload = try records.upload(id), upload.sender == sender.name else {
      throw TusRefusal(.notFound, "no-such-upload", "There is no such upload.")
    }
    let now = inbox.surroundings.now().secondsSince1970
    guard upload.state != .dropped, upload.state == .finished || upload.expires > now else {
      throw TusRefusal(.gone, "upload-gone", "The upload expired, was ended, or was not what its sum says.")
    }
    if upload.state == .open, upload.frontEnd != inbox.frontEnd { try refuse(upload, at: now) }
    return upload
  }

  /// The seconds to wait for the process with the bytes, before the upload starts over at another.
  private static let patience: Int64 = 600

  /// Refuses another process's upload.
  ///
  /// - Throws: 503 while that process may return; then drops it with 410, so that the sender starts over here.
  private func refuse(_ upload: InboxUpload, at now: Int64) throws {
    guard upload.expires - inbox.limits.uploadSeconds + Self.patience <= now else {
      throw TusRefusal(
        .serviceUnavailable, "upload-elsewhere", "The upload goes on at the server that it began at.",
        headers: ["Retry-After": "10"])
    }
    guard try records.drop(upload.id) else {
      // It ended meanwhile: the sender learns so when it asks again.
      throw TusRefusal(
        .serviceUnavailable, "upload-elsewhere", "The upload ended at the server that it began at.",
        headers: ["Retry-After": "1"])
    }
    throw TusRefusal(.gone, "upload-gone", "The server that had the upload is not there any more.")
  }

  /// Completes a whole upload that could not be stored before.
  private func completed(_ upload: InboxUpload) throws -> InboxUpload {
    guard inbox.storage.isShared, upload.state == .open, upload.offset == upload.length else { return upload }
    try take(upload.id)
    defer { release(upload.id) }
    guard let current = try records.upload(upload.id), current.state == .open else {
      return try records.upload(upload.id) ?? upload
    }
    try inbox.complete(current).check()
    return try records.upload(upload.id) ?? upload
  }

  private func take(_ id: String) throws(TusRefusal) {
    guard inbox.turns.take(id) else {
      throw TusRefusal(
        .locked, "upload-busy", "Another part of it is coming in just now.", headers: ["Retry-After": "1"])
    }
  }

  private func release(_ id: String) { inbox.turns.release(id) }

  private static func number(_ request: Request, _ name: String) throws(TusRefusal) -> Int64? {
    let values = request.headers.all(name)
    guard let text = values.first else { return nil }
    guard values.count == 1, !text.isEmpty, text.utf8.count <= 18, text.utf8.allSatisfy({ (48...57).contains($0) }),
      let number = Int64(text)
    else { throw TusRefusal(.badRequest, "field-malformed", "\(name) is no number.") }
    return number
  }

  // MARK: Creation

  func create(_ request: Request, _ length: Int64?) throws -> BodyIntake {
    let sender = try sender(of: request)
    try checkVersion(request)
    let upload = try announced(request, by: sender)
    let hasBody = length != 0
    if hasBody { try Self.checkType(request) }
    let checksum = try hasBody ? request.headers[TusField.checksum].map { value in try PartChecksum(value) } : nil
    if let length, length > upload.length {
      throw TusRefusal(.contentTooLarge, "upload-too-long", "The body has more bytes than the upload.")
    }
    guard upload.length <= (try inbox.fileSystem.freeSpace(at: inbox.folders.uploads)) - inbox.limits.freeBytes else {
      throw TusRefusal(.insufficientStorage, "no-space", "The disk of the receiver is full.")
    }
    switch try records.admit(upload, quota: sender.quota, limits: inbox.limits) {
    case .begun: break
    case .known(let known):
      var response = Self.created(known)
      response.headers.set(TusField.offset, String(known.length))
      return hasBody
        ? .refused(TusServer.stamped(response)) : .stream(limit: 0, AnswerConsumer(TusServer.stamped(response)))
    case .tooMany:
      throw TusRefusal(
        .tooManyRequests, "too-many-uploads", "Finish or end other uploads first.", headers: ["Retry-After": "60"])
    case .senderFull: throw TusRefusal(.insufficientStorage, "sender-quota", "This sender has no room left here.")
    case .full: throw TusRefusal(.insufficientStorage, "inbox-quota", "The inbox has no room left.")
    }
    do {
      let file = try inbox.fileSystem.create(inbox.folders.upload(upload.id), permissions: .ownerReadWrite)
      try file.commit()
      try inbox.fileSystem.synchronizeDirectory(inbox.folders.uploads)
      guard hasBody else { return .stream(limit: 0, AnswerConsumer(TusServer.stamped(Self.created(upload)))) }
      return try taking(upload.id) {
        try part(of: upload, checksum) { upload in
          var response = Self.created(upload)
          response.headers.set(TusField.offset, String(upload.offset))
          return response
        }
      }
    } catch {
      // The error is the answer; the upload no longer counts.
      _ = try? records.drop(upload.id)
      throw error
    }
  }

  private func announced(_ request: Request, by sender: InboxSender) throws -> InboxUpload {
    guard request.headers["Upload-Concat"] == nil, request.headers["Upload-Defer-Length"] == nil else {
      throw TusRefusal(.badRequest, "extension-unknown", "Neither concatenation nor a later length is offered here.")
    }
    guard let length = try Self.number(request, TusField.length) else {
      throw TusRefusal(.badRequest, "length-needed", "Upload-Length must say how many bytes there are.")
    }
    guard length > 0 else { throw TusRefusal(.badRequest, "empty", "A bundle of no bytes is none.") }
    guard length <= inbox.limits.bundleBytes else {
      throw TusRefusal(
        .contentTooLarge, "bundle-too-large", "At most \(inbox.limits.bundleBytes) bytes are taken.",
        headers: [TusField.maxSize: String(inbox.limits.bundleBytes)])
    }
    let now = inbox.surroundings.now()
    var upload = InboxUpload(
      id: inbox.surroundings.makeUUID().description.lowercased(), sender: sender.name, length: length, created: now,
      expires: inbox.expiry())
    upload.frontEnd = inbox.frontEnd
    guard let field = request.headers[TusField.metadata] else { return upload }
    guard request.headers.count(of: TusField.metadata) == 1, let metadata = UploadMetadata(field) else {
      throw TusRefusal(.badRequest, "metadata-malformed", "Upload-Metadata is malformed.")
    }
    upload.metadata = field
    upload.fileName = metadata[UploadMetadata.fileName].map { String($0.prefix(200)) }
    upload.level = metadata["level"].map { String($0.prefix(40)) }
    if let sum = metadata[UploadMetadata.sha256] {
      guard sum.utf8.count == 64, sum.utf8.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }) else {
        throw TusRefusal(.badRequest, "metadata-malformed", "The sum in Upload-Metadata is no SHA-256.")
      }
      upload.sha256 = sum.lowercased()
    }
    return upload
  }

  private static func checkType(_ request: Request) throws(TusRefusal) {
    guard request.headers["Content-Type"]?.lowercased() == TusField.partType else {
      throw TusRefusal(.unsupportedMediaType, "type-unknown", "The type of a part is \(TusField.partType).")
    }
  }

  private static func created(_ upload: InboxUpload) -> Response {
    var response = Response(.created, headers: ["Location": "\(TusServer.path)/\(upload.id)"])
    addExpiry(of: upload, to: &response)
    return response
  }

  private static func addExpiry(of upload: InboxUpload, to response: inout Response) {
    guard upload.state == .open, upload.offset < upload.length else { return }
    response.headers.set(TusField.expires, HTTPDate.text(Timestamp(secondsSince1970: upload.expires)))
  }

  // MARK: Parts

  func append(_ request: Request, _ length: Int64?, _ id: String) throws -> BodyIntake {
    let sender = try sender(of: request)
    try checkVersion(request)
    try Self.checkType(request)
    _ = try upload(id, of: sender)
    let checksum = try request.headers[TusField.checksum].map { value in try PartChecksum(value) }
    guard let offset = try Self.number(request, TusField.offset) else {
      throw TusRefusal(.badRequest, "offset-needed", "Upload-Offset must say where the part begins.")
    }
    return try taking(id) {
      // Read again, since no other thread writes it now.
      let upload = try upload(id, of: sender)
      guard upload.state == .open, offset == upload.offset else {
        throw TusRefusal(
          .conflict, "offset-wrong", "The upload goes on at another offset.",
          headers: [TusField.offset: String(upload.state == .open ? upload.offset : upload.length)])
      }
      if let length, length > upload.length - offset {
        throw TusRefusal(.contentTooLarge, "upload-too-long", "The part has more bytes than are missing.")
      }
      return try part(of: upload, checksum) { [inbox] upload in
        var response = Response(.noContent, headers: [TusField.offset: String(upload.offset)])
        var current = upload
        current.expires = inbox.expiry().secondsSince1970
        Self.addExpiry(of: current, to: &response)
        return response
      }
    }
  }

  /// Reserves an upload; an error releases it.
  private func taking(_ id: String, _ body: () throws -> BodyIntake) throws -> BodyIntake {
    try take(id)
    do {
      return try body()
    } catch {
      release(id)
      throw error
    }
  }

  /// Receives the rest of a reserved upload, whose end releases it.
  private func part(
    of upload: InboxUpload, _ checksum: PartChecksum?, answer: @escaping (InboxUpload) -> Response
  ) throws -> BodyIntake {
    let consumer = try PartConsumer(upload, in: inbox, checksum: checksum, answer: answer) { [self] in
      release(upload.id)
    }
    return .stream(limit: upload.length - upload.offset, consumer)
  }

  // MARK: Looking and ending

  func look(_ request: Request, _ id: String) throws -> Response {
    let sender = try sender(of: request)
    try checkVersion(request)
    let upload = try completed(upload(id, of: sender))
    var response = Response(
      .ok,
      headers: [
        TusField.offset: String(upload.state == .finished ? upload.length : upload.offset),
        TusField.length: String(upload.length), "Cache-Control": "no-store",
      ])
    if !upload.metadata.isEmpty { response.headers.set(TusField.metadata, upload.metadata) }
    Self.addExpiry(of: upload, to: &response)
    return response
  }

  /// Returns the receipt, the same each time the bundle is sent.
  func receipt(_ request: Request, _ id: String) throws -> Response {
    let sender = try sender(of: request)
    let upload = try completed(upload(id, of: sender))
    guard upload.state == .finished, let bundle = try upload.bundle.flatMap({ try records.bundle($0) }) else {
      throw TusRefusal(
        .conflict, "upload-unfinished", "There is a receipt once all of it has come.",
        headers: [TusField.offset: String(upload.offset)])
    }
    let receipt: JSON.Value = [
      "id": .string(bundle.id), "sha256": .string(bundle.sha256), "bytes": .integer(bundle.bytes),
      "date": .string(bundle.date),
    ]
    var response = Response.json(receipt.text + "\n")
    response.headers.set("Content-Type", "application/json")
    return response
  }

  func end(_ request: Request, _ id: String) throws -> Response {
    let sender = try sender(of: request)
    try checkVersion(request)
    try take(id)
    defer { release(id) }
    let upload = try upload(id, of: sender)
    guard upload.state == .open else {
      throw TusRefusal(.forbidden, "upload-finished", "It has arrived, and only the receiver can remove it.")
    }
    try records.drop(id)
    try inbox.fileSystem.unlink(inbox.folders.upload(id))
    return Response(.noContent)
  }
}

/// The consumer of an empty body.
final class AnswerConsumer: BodyConsumer {
  private let response: Response

  init(_ response: Response) { self.response = response }

  func take(_ bytes: [UInt8]) throws {}

  func answer() -> Response { response }

  func abandon() {}
}

/// A refusal as a JSON problem (RFC 9457).
struct TusRefusal: Error {
  var status: Status
  var code: String
  var words: String
  var headers = HeaderFields()

  init(_ status: Status, _ code: String, _ words: String, headers: HeaderFields = HeaderFields()) {
    self.status = status
    self.code = code
    self.words = words
    self.headers = headers
  }

  /// Converts any error; environmental ones without paths.
  init(_ error: any Error) {
    switch error {
    case let error as TusRefusal: self = error
    case let error as Refusal: self.init(error.status, "refused", sentence(error.words), headers: error.headers)
    case let error as FileError where error.kind == .noSpace:
      self.init(.insufficientStorage, error.code, "The disk of the receiver is full.")
    case let error as any ReportableError where error.isEnvironmental:
      self.init(.serviceUnavailable, error.code, "The receiver cannot keep it now.", headers: ["Retry-After": "60"])
    case let error as any ReportableError:
      self.init(.internalServerError, error.code, "The receiver could not keep it.")
    default: self.init(.internalServerError, "unforeseen-error", "The receiver could not keep it.")
    }
  }

  var response: Response {
    let problem: JSON.Value = [
      "status": .integer(Int64(status.rawValue)), "code": .string(code), "title": .string(status.reason),
      "detail": .string(words),
    ]
    var response = Response.json(problem.text + "\n", status: status)
    response.headers.set("Content-Type", "application/problem+json; charset=utf-8")
    for field in headers.fields { response.headers.add(field.name, field.value) }
    return response
  }
}
