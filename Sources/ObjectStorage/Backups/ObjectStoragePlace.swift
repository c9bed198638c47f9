package import Backup
package import Platform

/// A prefix in a bucket of object storage that holds the backups of one store.
///
/// A backup is there when its manifest is, a small object that is written last and only where there is none of its name.
/// Files keep their keys when they are dropped, so that nothing is copied: an empty object beside them says so.
package struct ObjectStoragePlace: BackupPlace {
  /// Where it is.
  package let address: S3Address

  /// The client of its bucket.
  package let client: S3Client

  let state = StorageState()

  /// A place, whether anything lies there or not; nothing is asked yet.
  package init(_ address: S3Address, _ client: S3Client) {
    self.address = address
    self.client = client
  }

  /// The place as a holder of secret keys sees it.
  package func unlocked(with identities: [AgeIdentity]) -> any BackupPlace {
    identities.isEmpty ? self : sealedView(of: self, with: identities)
  }

  /// The address.
  package var location: String { address.description }

  /// As many as a client keeps connections for: each request waits for the way to the server and back.
  package var readsAtOnce: Int { 8 }

  /// What the bucket does with what is removed.
  package func keeping() throws(BackupError) -> S3Keeping {
    try wrapping(BackupError.init) { () throws(S3Error) in try client.keeping() }
  }

  // MARK: Names

  func contents() throws(BackupError) -> StorageContents {
    try wrapping(BackupError.init) { () throws(S3Error) in
      StorageContents(try client.list(address.key("")), of: address)
    }
  }

  /// The key of a file's bytes.
  func key(_ name: String, in section: BackupSection) throws(BackupError) -> String {
    guard FolderPlace.isName(name) else {
      throw BackupError(
        .request, operation: "find the file of a backup",
        detail: "\(printable(name)) is not a name that a backup's file can have", hint: "Check the backup's manifest.")
    }
    return StorageContents.isRecord(name) && section == .trash ? trashKey(name) : address.key(name)
  }

  func trashKey(_ name: String) -> String { address.key(StorageContents.trash + name) }
  func begunKey(_ id: BackupIdentifier) -> String { address.key("\(StorageContents.begun)\(id)") }

  /// Whether a file is there, in the section that is meant.
  private func isThere(_ name: String, in section: BackupSection) throws(BackupError) -> Bool {
    let key = try key(name, in: section)
    return try wrapping(BackupError.init) { () throws(S3Error) in
      guard try client.head(key) != nil else { return false }
      if StorageContents.isRecord(name) { return true }
      return try (client.head(trashKey(name)) != nil) == (section == .trash)
    }
  }
}

// MARK: - The protocol

extension ObjectStoragePlace {
  /// The files of a section.
  package func list(_ section: BackupSection) throws(BackupError) -> [BackupObject] {
    try contents().objects(in: section)
  }

  /// Whether a file of that name is there.
  package func contains(_ name: String, in section: BackupSection) throws(BackupError) -> Bool {
    try isThere(name, in: section)
  }

  /// Whether a file of a backup lies there encrypted: one request, for the names that begin with its own.
  package func isSealed(_ id: BackupIdentifier, in section: BackupSection) throws(BackupError) -> Bool {
    try wrapping(BackupError.init) { () throws(S3Error) in
      try client.list(address.key("\(id).")).objects.contains { $0.key.hasSuffix(BackupManifest.Encryption.fileEnding) }
    }
  }

  /// Reads a part of a file; more of it where it is read from one end to the other.
  package func read(
    _ name: String, in section: BackupSection, at offset: Int64, length: Int
  ) throws(BackupError) -> [UInt8] {
    let key = try key(name, in: section)
    return try wrapping(BackupError.init) { () throws(S3Error) in
      // What is read with one request has nothing to be fetched ahead, and need not wait for what another thread fetches.
      if StorageContents.isDocument(name) { return try client.get(key, at: offset, length: length) }
      return try state.ahead.read(key, at: offset, length: length) { (offset, length) throws(S3Error) in
        try client.get(key, at: offset, length: length)
      }
    }
  }

  /// Refuses to change anything once the lock is lost.
  private func requireLock() throws(BackupError) {
    if state.hasLostLock { throw StorageLock.lost(self) }
  }

  /// Begins a file, after a note that its backup is being written.
  package func begin(_ name: String) throws(BackupError) -> any BackupUpload {
    let key = try key(name, in: .kept)
    try requireLock()
    state.ahead.forget()
    if let id = StorageContents.identifier(of: name), state.begins(id) {
      do {
        try wrapping(BackupError.init) { () throws(S3Error) in try client.put(begunKey(id), []) }
      } catch {
        state.ends(id)
        throw error
      }
    }
    return StorageUpload(name, key, in: self)
  }

  /// Writes a small file; readers see the one before, or this one.
  package func replace(_ name: String, with bytes: [UInt8], in section: BackupSection) throws(BackupError) {
    let key = try key(name, in: section)
    try requireLock()
    state.ahead.forget()
    try wrapping(BackupError.init) { () throws(S3Error) in try client.put(key, bytes[...]) }
  }

  /// Notes that a file was dropped, or takes that note back; the file itself stays where it is.
  package func move(_ name: String, from: BackupSection, to: BackupSection) throws(BackupError) {
    guard from != to else { return }
    try requireLock()
    guard try isThere(name, in: from) else {
      throw BackupError(
        FileError(.notFound, operation: "move the file of a backup", detail: "\(printable(name)) is not there"))
    }
    try wrapping(BackupError.init) { () throws(S3Error) in
      switch to {
      case .trash: try client.put(trashKey(name), [], when: .absent)
      case .kept: try client.delete(trashKey(name))
      }
    }
  }

  /// Removes a file; in a bucket that keeps versions it is only hidden.
  package func delete(_ name: String, in section: BackupSection) throws(BackupError) {
    let key = try key(name, in: section)
    guard try isThere(name, in: section) else { return }
    try requireLock()
    state.ahead.forget()
    try wrapping(BackupError.init) { () throws(S3Error) in
      try client.delete(key)
      if section == .trash, !StorageContents.isRecord(name) { try client.delete(trashKey(name)) }
    }
  }

  /// The manifests of the backups that were begun and have none.
  package func unfinished() throws(BackupError) -> [String] {
    try contents().unfinished.map { "\($0)\(BackupManifest.suffix)" }
  }

  /// Removes the files of backups that have no manifest, and what was written of files that have no key.
  package func removeUnfinished() throws(BackupError) {
    let contents = try contents()
    try requireLock()
    try wrapping(BackupError.init) { () throws(S3Error) in
      for id in contents.unfinished {
        for name in contents.names(of: id) { try client.delete(address.key(name)) }
      }
      for id in contents.begun {
        do throws(S3Error) {
          try client.delete(begunKey(id))
        } catch {
          // Beside a manifest it says nothing, and may stay where nothing can be removed.
          guard error.kind == .access, !contents.unfinished.contains(id) else { throw error }
        }
      }
      let beginning = address.key("")
      for upload in try client.uploads(beginning) {
        // What other software writes into the same bucket is none of ours.
        let name = String(upload.key.dropFirst(beginning.count))
        if FolderPlace.isName(name), StorageContents.identifier(of: name) != nil { try client.abort(upload) }
      }
    }
  }

  /// Takes the lock of the place, and waits for the process that has it.
  package func lock() throws(BackupError) -> any BackupPlaceLock {
    let isConditional = try wrapping(BackupError.init) { () throws(S3Error) in
      try StorageLock.keepsToConditions(client, address)
    }
    state.looksFirst(!isConditional)
    return try StorageLock(of: self)
  }
}

/// What a place knows of its own process: the backups that it writes, and how long its lock holds.
final class StorageState: Sendable {
  private let begun = Mutex<Set<BackupIdentifier>>([])
  private let lockedUntil = Mutex<ContinuousClock.Instant?>(nil)

  /// Whether it is the first file of a backup that is begun.
  func begins(_ id: BackupIdentifier) -> Bool { begun.withLock { $0.insert(id).inserted } }

  /// Takes down that a backup is there, or given up.
  func ends(_ id: BackupIdentifier) { begun.withLock { _ = $0.remove(id) } }

  let ahead = ReadAhead()

  private let looks = Mutex(false)

  /// Takes down whether a file is looked for before it is written, since the server passes over the condition.
  func looksFirst(_ does: Bool) { looks.withLock { $0 = does } }

  /// Whether a file is looked for before it is written.
  var looksFirst: Bool { looks.withLock { $0 } }

  /// Takes down how long the lock holds; nil for no lock.
  func holds(until moment: ContinuousClock.Instant?) { lockedUntil.withLock { $0 = moment } }

  /// Whether a lock was taken that holds no more, so that another process may have it.
  var hasLostLock: Bool { lockedUntil.withLock { $0.map { $0 < .now } ?? false } }
}

/// What a bucket does with what is removed.
package enum S3Keeping: Sendable, Hashable {
  case nothing

  /// Earlier versions of objects stay, also of those that were removed.
  case versions

  /// Objects cannot be removed for good for so many days after they were written; where no number is set, for as long as each
  /// one's own lock says.
  case locked(days: Int?)

  /// The credentials do not allow to ask.
  case unknown

  /// That what is removed is not gone, as a sentence; nil where it is, or where that is not known.
  package func words(at date: Timestamp) -> String? {
    switch self {
    case .nothing, .unknown: nil
    case .versions:
      "The bucket keeps versions: what is removed is hidden, and takes room until a rule of the bucket expires it."
    case .locked(nil):
      "The bucket locks objects: what is removed is hidden, and stays for as long as each object's lock says."
    case .locked(let days?):
      "The bucket locks objects for \(counted(days, "day")): what is removed is hidden, and can be deleted for good once that has passed since it was written, all of it from \(Self.day(in: days, date)) on, unless an object has a longer lock of its own."
    }
  }

  private static func day(in days: Int, _ date: Timestamp) -> String {
    String(Timestamp(secondsSince1970: date.secondsSince1970 + Int64(days + 1) * 86_400).rfc3339.prefix(10))
  }
}

/// A file of a backup that is being written: at once where it is small, else in parts.
///
/// Its key is free until `commit`.
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

  /// The bytes of the first thousand parts; those of each further thousand have twice as many.
  private static let partLength = 8 << 20

  init(_ name: String, _ key: String, in place: ObjectStoragePlace) {
    self.name = name
    self.key = key
    self.place = place
  }

  deinit { abandon() }

  /// Whether it is what a backup is known by; it is always written with one request, which takes a condition.
  private var isManifest: Bool { name.hasSuffix(BackupManifest.suffix) }

  private static func length(ofPart number: Int) -> Int { partLength << min((number - 1) / 1000, 8) }

  func append(_ bytes: ArraySlice<UInt8>) throws(BackupError) {
    let (client, key, isManifest) = (place.client, key, isManifest)
    try wrapping(BackupError.init) { () throws(S3Error) in
      try state.withLock { (state) throws(S3Error) in
        state.waiting += bytes
        if isManifest { return }
        while state.waiting.count > Self.length(ofPart: state.parts.count + 1) {
          let length = Self.length(ofPart: state.parts.count + 1)
          try Self.send(state.waiting.prefix(length), &state, client, key)
          state.waiting.removeFirst(length)
        }
      }
    }
  }

  private static func send(
    _ bytes: ArraySlice<UInt8>, _ state: inout State, _ client: S3Client, _ key: String
  ) throws(S3Error) {
    let upload: S3Upload
    if let begun = state.upload { upload = begun } else { upload = try client.beginUpload(key) }
    state.upload = upload
    guard state.parts.count < S3Client.mostParts else {
      throw S3Error(.answer, operation: "write to the object storage", detail: "the file has too many parts")
    }
    state.parts.append(try client.put(bytes, as: state.parts.count + 1, of: upload))
    state.sent += Int64(bytes.count)
  }

  func finish() throws(BackupError) {
    let (client, key) = (place.client, key)
    try wrapping(BackupError.init) { () throws(S3Error) in
      try state.withLock { (state) throws(S3Error) in
        guard state.upload != nil, !state.waiting.isEmpty else { return }
        try Self.send(state.waiting[...], &state, client, key)
        state.waiting = []
      }
    }
  }

  func commit() throws(BackupError) {
    try finish()
    guard !place.state.hasLostLock else { throw StorageLock.lost(place) }
    let (client, key, looksFirst) = (place.client, key, place.state.looksFirst)
    try wrapping(BackupError.init) { () throws(S3Error) in
      try state.withLock { (state) throws(S3Error) in
        guard !state.isClosed else { return }
        if let upload = state.upload {
          // The end of an upload takes no condition; only the manifest decides, which is written with one.
          guard try client.head(key) == nil else { throw Self.taken(name) }
          try client.complete(upload, state.parts, bytes: state.sent)
        } else {
          if looksFirst, try client.head(key) != nil { throw Self.taken(name) }
          try client.put(key, state.waiting[...], when: .absent)
        }
        state.isClosed = true
        state.waiting = []
      }
    }
    guard name.hasSuffix(BackupManifest.suffix), let id = StorageContents.identifier(of: name),
      name == "\(id)\(BackupManifest.suffix)"
    else { return }
    place.state.ends(id)
    // The backup is there; a note that it was begun says no more then, and the next one removes it.
    try? client.delete(place.begunKey(id))
  }

  func abandon() {
    let upload = state.withLock { state in
      defer { state.isClosed = true }
      return state.isClosed ? nil : state.upload
    }
    // What cannot be given up now is given up by the next backup.
    if let upload { try? place.client.abort(upload) }
  }

  private static func taken(_ name: String) -> S3Error {
    S3Error(.precondition, operation: "write to the object storage", detail: "\(printable(name)) is there already")
  }
}
