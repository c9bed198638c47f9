internal import HTTPServer
internal import Platform

/// Takes one part of an upload, and writes it to its file as it comes.
///
/// What came before a connection broke is kept: an offset is only told once the bytes before it are on the disk.
final class PartConsumer: BodyConsumer {
  /// How many bytes may come before what is there is pushed to the disk and noted.
  private static let step: Int64 = 16 << 20

  private let inbox: Inbox
  private let upload: InboxUpload
  private let checksum: PartChecksum?
  private let answer: (InboxUpload) -> Response
  private let release: () -> Void

  private var file: WritableFile?
  private var position: Int64
  private var noted: Int64
  private var sum: PartChecksum.Running?
  private var isUndone = false
  private var isOver = false

  /// - Parameters:
  ///   - upload: the upload as it is; the part begins at its offset.
  ///   - checksum: what the part's sum must be.
  ///   - answer: the answer once all of the part is there and kept.
  ///   - release: called once, when the part is over.
  /// - Throws: what the file system says.
  init(
    _ upload: InboxUpload, in inbox: Inbox, checksum: PartChecksum?, answer: @escaping (InboxUpload) -> Response,
    release: @escaping () -> Void
  ) throws {
    self.inbox = inbox
    self.upload = upload
    self.checksum = checksum
    self.answer = answer
    self.release = release
    position = upload.offset
    noted = upload.offset
    sum = checksum?.running
    let file = try inbox.fileSystem.update(inbox.folders.upload(upload.id))
    // Bytes that a kill left behind what was noted are not counted, and come again.
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
      // The consumer's words reach the client as those of a refusal.
      let refusal = TusRefusal(error)
      throw Refusal(refusal.status, refusal.words, headers: refusal.headers)
    }
  }

  /// Pushes what came to the disk, and notes how much it is.
  private func note() throws {
    try file?.synchronize()
    try inbox.records.advance(upload.id, to: position, expires: inbox.expiry())
    noted = position
  }

  func finish() -> Response {
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
      return TusServer.stamped(answer(current))
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
      // No client is there to be told. What was noted before counts; the rest comes again.
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

/// What the sum of a part must be, by an algorithm that is known here.
struct PartChecksum: Sendable {
  /// The algorithms, as `Tus-Checksum-Algorithm` lists them.
  static let algorithms = ["sha1", "sha256"]

  private let expected: UploadChecksum

  /// A sum that is on its way.
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

  /// What a field asks for.
  ///
  /// - Throws: ``TusRefusal`` 400 where it is malformed, or of an algorithm that is not known.
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

  /// A sum of nothing yet.
  var running: Running { expected.algorithm == "sha1" ? .sha1(Insecure.SHA1()) : .sha256(SHA256()) }

  /// Whether a sum is the one that is expected.
  func matches(_ running: Running) -> Bool {
    switch running {
    case .sha1(let hash): Array(hash.finalize()) == expected.sum
    case .sha256(let hash): Array(hash.finalize()) == expected.sum
    }
  }
}
