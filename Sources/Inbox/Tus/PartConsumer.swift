internal import HTTPServer
internal import Platform

/// Writes a part of an upload as it arrives.
///
/// Bytes before a broken connection stay: an offset is reported only once they are on disk.
final class PartConsumer: BodyConsumer {
  /// The bytes between two synchronizations.
  private static let step: Int64 = 16 << 20

  private let inbox: Inbox
  private let upload: InboxUpload
  private let checksum: PartChecksum?
  private let respond: (InboxUpload) -> Response
  private let release: () -> Void

  private var file: WritableFile?
  private var position: Int64
  private var noted: Int64
  private var sum: PartChecksum.Running?
  private var isUndone = false
  private var isOver = false

  /// - Parameters:
  ///   - upload: its offset is the part's start.
  ///   - answer: called once the part is on disk.
  ///   - release: called once at the end.
  /// - Throws: file system errors.
  init(
    _ upload: InboxUpload, in inbox: Inbox, checksum: PartChecksum?, answer: @escaping (InboxUpload) -> Response,
    release: @escaping () -> Void
  ) throws {
    self.inbox = inbox
    self.upload = upload
    self.checksum = checksum
    respond = answer
    self.release = release
    position = upload.offset
    noted = upload.offset
    sum = checksum?.running
    let file = try inbox.fileSystem.update(inbox.folders.upload(upload.id))
    // A kill left bytes past the offset; they are sent again.
    try file.truncate(to: upload.offset)
    self.file = consume file
  }

  func take(_ bytes: [UInt8]) throws {
    do {
      guard Int64(bytes.count) <= upload.length - position else {
        isUndone = true
        throw TusRefusal(.contentTooLarge, "upload-too-long", "More bytes came than the upload has.")
      }
      try file?.write(bytes, at: position)
      sum?.update(bytes)
      position += Int64(bytes.count)
      if position - noted >= Self.step { try note() }
    } catch {
      // The server answers a consumer's refusal.
      let refusal = TusRefusal(error)
      throw Refusal(refusal.status, refusal.words, headers: refusal.headers)
    }
  }

  /// Synchronizes and records the offset.
  private func note() throws {
    try file?.synchronize()
    try inbox.records.advance(upload.id, to: position, expires: inbox.expiry())
    noted = position
  }

  func answer() -> Response {
    do {
      defer { end() }
      if let checksum, let sum, !checksum.matches(sum) {
        try undo()
        throw TusRefusal(
          .checksumMismatch, "checksum-mismatch", "The part is not what its sum says; it is not counted.",
          headers: [TusField.offset: String(upload.offset)])
      }
      try note()
      var current = upload
      current.offset = position
      if position == upload.length {
        file = nil
        try inbox.complete(current).check()
      }
      return TusServer.stamped(respond(current))
    } catch {
      return TusServer.stamped(TusRefusal(error).response)
    }
  }

  func abandon() {
    defer { end() }
    do {
      if isUndone { return try undo() }
      try note()
      guard position == upload.length else { return }
      file = nil
      var current = upload
      current.offset = position
      _ = try inbox.complete(current)
    } catch {
      // The client is gone, and continues from the recorded offset.
    }
  }

  private func undo() throws {
    try file?.truncate(to: upload.offset)
    try file?.synchronize()
    position = upload.offset
    try inbox.records.advance(upload.id, to: upload.offset, expires: inbox.expiry())
  }

  private func end() {
    guard !isOver else { return }
    isOver = true
    file = nil
    release()
  }
}

struct PartChecksum: Sendable {
  /// The value of `Tus-Checksum-Algorithm`.
  static let algorithms = ["sha1", "sha256"]

  private let expected: UploadChecksum

  enum Running {
    case sha1(Insecure.SHA1)
    case sha256(SHA256)

    mutating func update(_ bytes: [UInt8]) {
      switch self {
      case .sha1(var hash):
        hash.update(data: bytes)
        self = .sha1(hash)
      case .sha256(var hash):
        hash.update(data: bytes)
        self = .sha256(hash)
      }
    }
  }

  /// Parses the header field.
  ///
  /// - Throws: ``TusRefusal`` 400 if malformed or of an unknown algorithm.
  init(_ field: String) throws(TusRefusal) {
    guard let sum = UploadChecksum(field) else {
      throw TusRefusal(.badRequest, "checksum-malformed", "Upload-Checksum is malformed.")
    }
    let length = ["sha1": 20, "sha256": 32][sum.algorithm]
    guard let length else {
      throw TusRefusal(.badRequest, "checksum-unknown", "The algorithm of Upload-Checksum is not known here.")
    }
    guard sum.sum.count == length else {
      throw TusRefusal(.badRequest, "checksum-malformed", "Upload-Checksum is malformed.")
    }
    expected = sum
  }

  var running: Running { expected.algorithm == "sha1" ? .sha1(Insecure.SHA1()) : .sha256(SHA256()) }

  func matches(_ running: Running) -> Bool {
    switch running {
    case .sha1(let hash): Array(hash.finalize()) == expected.sum
    case .sha256(let hash): Array(hash.finalize()) == expected.sum
    }
  }
}
