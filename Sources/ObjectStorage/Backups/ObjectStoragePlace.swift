package import Backup
package import Platform

/// A bucket prefix with the backups of one store.
///
/// A backup exists once its manifest does, which is written last and only if the key is free. Dropped files keep their
/// keys to avoid copying; an empty object under `trash/` marks them.
package struct ObjectStoragePlace: BackupPlace {
  let address: S3Address

  let client: S3Client

  let state = StorageState()

  package init(_ address: S3Address, _ client: S3Client) {
    self.address = address
    self.client = client
  }

  package func unlocked(with identities: [AgeIdentity]) -> any BackupPlace {
    identities.isEmpty ? self : sealedView(of: self, with: identities)
  }

  package var location: String { address.description }

  /// The client's connection limit: each request waits for a round trip.
  package var readsAtOnce: Int { 8 }

  package func keeping() throws -> BucketRetention { try asking { () throws(BackupError) in try client.keeping() } }

  // MARK: Names

  func contents() throws -> StorageContents {
    try asking { () throws(BackupError) in StorageContents(try client.list(address.key("")), of: address) }
  }

  func key(_ name: String, in section: BackupSection) throws -> String {
    guard FolderPlace.isName(name) else {
      throw BackupError(
        .request, operation: "find the file of a backup",
        detail: "\(printable(name)) is not a name that a backup's file can have", hint: "Check the backup's manifest.")
    }
    return StorageContents.isRecord(name) && section == .trash ? trashKey(name) : address.key(name)
  }

  func trashKey(_ name: String) -> String { address.key(StorageContents.trash + name) }
  func begunKey(_ id: BackupIdentifier) -> String { address.key("\(StorageContents.begun)\(id)") }

  private func isThere(_ name: String, in section: BackupSection) throws -> Bool {
    let key = try key(name, in: section)
    return try asking { () throws(BackupError) in
      guard try client.head(key) != nil else { return false }
      if StorageContents.isRecord(name) { return true }
      return try (client.head(trashKey(name)) != nil) == (section == .trash)
    }
  }
}

// MARK: - The protocol

extension ObjectStoragePlace {
  package func list(_ section: BackupSection) throws -> [BackupObject] { try contents().objects(in: section) }

  package func contains(_ name: String, in section: BackupSection) throws -> Bool { try isThere(name, in: section) }

  /// Whether the backup has an encrypted file; lists its keys once.
  package func isSealed(_ id: BackupIdentifier, in section: BackupSection) throws -> Bool {
    try asking { () throws(BackupError) in
      try client.list(address.key("\(id).")).objects.contains { $0.key.hasSuffix(BackupManifest.Encryption.fileEnding) }
    }
  }

  /// Reads a range, with read-ahead if access is sequential.
  package func read(_ name: String, in section: BackupSection, at offset: Int64, length: Int) throws -> [UInt8] {
    let key = try key(name, in: section)
    return try asking { () throws(BackupError) in
      // One request reads it all, without waiting for another thread's read-ahead.
      if StorageContents.isDocument(name) { return try client.get(key, at: offset, length: length) }
      return try state.ahead.read(key, at: offset, length: length) { (offset, length) throws(BackupError) in
        try client.get(key, at: offset, length: length)
      }
    }
  }

  private func requireLock() throws { if state.hasLostLock { throw StorageLock.lost(self) } }

  /// Starts a file; the first of a backup also writes the `begun/` note.
  package func begin(_ name: String) throws -> any BackupUpload {
    let key = try key(name, in: .kept)
    try requireLock()
    state.ahead.forget()
    if let id = StorageContents.identifier(of: name), state.begins(id) {
      do {
        try asking { () throws(BackupError) in try client.put(begunKey(id), []) }
      } catch {
        state.ends(id)
        throw error
      }
    }
    return StorageUpload(name, key, in: self)
  }

  /// Replaces a small file atomically.
  package func replace(_ name: String, with bytes: [UInt8], in section: BackupSection) throws {
    let key = try key(name, in: section)
    try requireLock()
    state.ahead.forget()
    try asking { () throws(BackupError) in try client.put(key, bytes[...]) }
  }

  /// Marks a file as dropped or unmarks it; its bytes stay.
  package func move(_ name: String, from: BackupSection, to: BackupSection) throws {
    guard from != to else { return }
    try requireLock()
    guard try isThere(name, in: from) else {
      throw BackupError(
        FileError(.notFound, operation: "move the file of a backup", detail: "\(printable(name)) is not there"))
    }
    try asking { () throws(BackupError) in
      switch to {
      case .trash: try client.put(trashKey(name), [], when: .absent)
      case .kept: try client.delete(trashKey(name))
      }
    }
  }

  /// Deletes a file; a versioned bucket only hides it.
  package func delete(_ name: String, in section: BackupSection) throws {
    let key = try key(name, in: section)
    guard try isThere(name, in: section) else { return }
    try requireLock()
    state.ahead.forget()
    try asking { () throws(BackupError) in
      try client.delete(key)
      if section == .trash, !StorageContents.isRecord(name) { try client.delete(trashKey(name)) }
    }
  }

  /// The manifest names of begun backups without manifest.
  package func unfinished() throws -> [String] { try contents().unfinished.map { "\($0)\(BackupManifest.suffix)" } }

  /// Removes backups without manifest, and incomplete uploads.
  package func removeUnfinished() throws {
    let contents = try contents()
    try requireLock()
    try asking { () throws(BackupError) in
      for id in contents.unfinished { for name in contents.names(of: id) { try client.delete(address.key(name)) } }
      for id in contents.begun {
        do throws(BackupError) {
          try client.delete(begunKey(id))
        } catch  where error.kind == .s3Access && !contents.unfinished.contains(id) {
          // Next to a manifest the note is harmless.
        }
      }
      let beginning = address.key("")
      for upload in try client.uploads(beginning) {
        // Leave other software's uploads alone.
        let name = String(upload.key.dropFirst(beginning.count))
        if FolderPlace.isName(name), StorageContents.identifier(of: name) != nil { try client.abort(upload) }
      }
    }
  }

  package func lock() throws -> any BackupPlaceLock {
    let isConditional = try asking { () throws(BackupError) in try StorageLock.keepsToConditions(client, address) }
    state.looksFirst.withLock { $0 = !isConditional }
    return try StorageLock(of: self)
  }
}

/// This process's backups in progress and lock.
final class StorageState: Sendable {
  private let begun = Mutex<Set<BackupIdentifier>>([])
  private let lockedUntil = Mutex<ContinuousClock.Instant?>(nil)

  /// Whether this is the backup's first file.
  func begins(_ id: BackupIdentifier) -> Bool { begun.withLock { $0.insert(id).inserted } }

  func ends(_ id: BackupIdentifier) { begun.withLock { _ = $0.remove(id) } }

  let ahead = ObjectReadAhead()

  /// Whether to check for a file before writing, as the server ignores conditions.
  let looksFirst = Mutex(false)

  func holds(until moment: ContinuousClock.Instant?) { lockedUntil.withLock { $0 = moment } }

  /// Whether the lock expired, so that another process may hold it.
  var hasLostLock: Bool { lockedUntil.withLock { $0.map { $0 < .now } ?? false } }
}

/// A backup file being written, in parts if large.
///
/// Its key stays free until `commit`.
final class StorageUpload: BackupUpload {
  let name: String
  private let key: String
  private let place: ObjectStoragePlace
  private let state = Mutex(State())

  private struct State {
    var waiting: [UInt8] = []
    var sent: Int64 = 0
    var upload: S3Upload?
    var parts: [S3Part] = []
    var isClosed = false
  }

  /// The length of the first thousand parts; it doubles each further thousand.
  private static let partLength = 8 << 20

  init(_ name: String, _ key: String, in place: ObjectStoragePlace) {
    self.name = name
    self.key = key
    self.place = place
  }

  deinit { abandon() }

  /// Manifests are always written by one conditional request.
  private var isManifest: Bool { name.hasSuffix(BackupManifest.suffix) }

  private static func length(ofPart number: Int) -> Int { partLength << min((number - 1) / 1000, 8) }

  func append(_ bytes: ArraySlice<UInt8>) throws {
    try changing { (state) throws(BackupError) in
      state.waiting += bytes
      if isManifest { return }
      while state.waiting.count > Self.length(ofPart: state.parts.count + 1) {
        let length = Self.length(ofPart: state.parts.count + 1)
        try send(state.waiting.prefix(length), &state)
        state.waiting.removeFirst(length)
      }
    }
  }

  /// Changes the state by requests.
  private func changing(_ change: (inout State) throws(BackupError) -> Void) throws {
    try asking { () throws(BackupError) in try state.withLock { (state) throws(BackupError) in try change(&state) } }
  }

  private func send(_ bytes: ArraySlice<UInt8>, _ state: inout State) throws(BackupError) {
    let client = place.client
    let upload = if let begun = state.upload { begun } else { try client.beginUpload(key) }
    state.upload = upload
    guard state.parts.count < S3Client.mostParts else {
      throw BackupError(.s3Answer, operation: "write to the object storage", detail: "the file has too many parts")
    }
    state.parts.append(try client.put(bytes, as: state.parts.count + 1, of: upload))
    state.sent += Int64(bytes.count)
  }

  func synchronize() throws {
    try changing { (state) throws(BackupError) in
      guard state.upload != nil, !state.waiting.isEmpty else { return }
      try send(state.waiting[...], &state)
      state.waiting = []
    }
  }

  func commit() throws {
    try synchronize()
    guard !place.state.hasLostLock else { throw StorageLock.lost(place) }
    let (client, looksFirst) = (place.client, place.state.looksFirst.withLock { $0 })
    try changing { (state) throws(BackupError) in
      guard !state.isClosed else { return }
      // Completion takes no condition; the manifest's write does.
      if state.upload != nil || looksFirst, try client.head(key) != nil { throw taken() }
      if let upload = state.upload {
        try client.complete(upload, state.parts, bytes: state.sent)
      } else {
        try client.put(key, state.waiting[...], when: .absent)
      }
      state.isClosed = true
      state.waiting = []
    }
    guard let id = StorageContents.identifier(of: name), name == "\(id)\(BackupManifest.suffix)" else { return }
    place.state.ends(id)
    // The backup is complete; a remaining note is harmless, and the next backup removes it.
    try? client.delete(place.begunKey(id))
  }

  func abandon() {
    let upload = state.withLock { state in
      defer { state.isClosed = true }
      return state.isClosed ? nil : state.upload
    }
    // If this fails, the next backup aborts the upload.
    if let upload { try? place.client.abort(upload) }
  }

  private func taken() -> BackupError {
    BackupError(
      .s3Precondition, operation: "write to the object storage", detail: "\(printable(name)) is there already")
  }
}

/// A read-ahead buffer for sequential reads of one object.
///
/// Blocks of a backup have 512 KiB, and each request costs a round trip. Random access fetches only its range.
package final class ObjectReadAhead: Sendable {
  static let most = 8 << 20

  /// The gap that still counts as sequential, since several threads read an object in turns of some blocks.
  private static let reach: Int64 = 4 << 20

  private struct State {
    var key = ""
    var last = Stretch()
    /// The stretch before, for a thread that lags.
    var before = Stretch()
    var window = 0
  }

  private struct Stretch {
    var start: Int64 = 0
    var bytes: [UInt8] = []
    var end: Int64 { start + Int64(bytes.count) }

    /// The bytes if the stretch has them all.
    func part(at offset: Int64, _ length: Int) -> [UInt8]? {
      offset >= start && Int64(length) <= end - offset ? prefix(at: offset, length) : nil
    }

    /// The available bytes from `offset` on.
    func prefix(at offset: Int64, _ length: Int) -> [UInt8] {
      let first = Int(offset - start)
      guard first < bytes.count else { return [] }
      if first == 0, length >= bytes.count { return bytes }
      return Array(bytes[first..<min(bytes.count, first + length)])
    }
  }

  private let state = Mutex(State())

  package init() {}

  /// Reads a range of an immutable object.
  ///
  /// - Parameter fetch: requests a range; returns fewer bytes at the object's end.
  package func read(
    _ key: String, at offset: Int64, length: Int, fetch: (Int64, Int) throws(BackupError) -> [UInt8]
  ) throws(BackupError) -> [UInt8] {
    // Fetch under the lock, so that another reader finds its range fetched.
    try state.withLock { state throws(BackupError) in
      if state.key != key { state = State(key: key) }
      if let known = state.last.part(at: offset, length) ?? state.before.part(at: offset, length) { return known }
      let end = state.last.end
      // Include the range that another thread needs next.
      let reach = state.window > 0 ? Self.reach : 0
      let goesOn = !state.last.bytes.isEmpty && offset >= state.last.start && offset - end <= reach
      state.window = goesOn ? min(2 * max(min(length, Self.most), state.window), Self.most) : 0
      let start = goesOn ? min(offset, end) : offset
      let bytes = try fetch(start, max(Int(offset - start) + length, state.window))
      (state.before, state.last) = (state.last, Stretch(start: start, bytes: bytes))
      return state.last.prefix(at: offset, length)
    }
  }

  /// Drops the buffer after a change.
  package func forget() { state.withLock { $0 = State() } }
}

extension BackupError {
  /// The error as of a folder, so that callers need not know the place's type.
  var ofPlace: BackupError {
    switch kind {
    case .s3NotFound: BackupError(FileError(.notFound, operation: operation, detail: detail))
    case .s3Precondition:
      BackupError(.nameTaken, because: FileError(.alreadyExists, operation: operation, detail: detail, hint: hint))
    default: self
    }
  }
}

/// Runs requests; their errors become those of a place of backups.
func asking<Value>(_ requests: () throws(BackupError) -> Value) throws(BackupError) -> Value {
  do throws(BackupError) { return try requests() } catch { throw error.ofPlace }
}
