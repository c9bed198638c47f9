import Backup
import Compatibility
import ObjectStorage
import StoreFiles

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
