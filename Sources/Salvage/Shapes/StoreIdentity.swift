internal import ManagedObjectModel
internal import PersistentStore
internal import SQLiteFormat

/// What a Core Data store says of itself: its metadata and the model that it carries, wherever their pages are.
struct StoreIdentity {
  /// The metadata that could be read.
  var metadata: StoreMetadata?

  /// The model cache that could be read.
  var cachedModel: ManagedObjectModel?

  /// The bytes that the model cache was read from, packed as they are; nil where none was.
  var modelBytes: [UInt8]?

  /// The page that the model cache was read from; nil where none was.
  var modelPage: UInt32?

  /// The version hashes that a recovery kit noted; they count where nothing in the store tells.
  var notedHashes: [String: VersionHash]?

  /// How many pages are tried at most; each of the two rows is alone on its page.
  private static let maximumAttempts = 256

  private static let maximumLength = 64 << 20

  /// Looks on every leaf that has few cells with one or three fields, then where the store's own schema says.
  ///
  /// - Parameter entries: the store's schema, as far as it could be read; its tables may have columns of another writer.
  static func find(
    _ reader: PageReader, _ map: PageMap, _ entries: [SchemaEntry]
  ) throws(SalvageError) -> StoreIdentity {
    var identity = StoreIdentity()
    guard map.pageCount >= 1 else { return identity }
    var attempts = 0
    var scratch = map
    var buffer = reader.makeBuffer()
    for page in 1...map.pageCount where map.look(page) == .tableLeaf && map.fate(page) != .damaged {
      let fields = map.fieldCount(page)
      guard fields == 1 || fields == 3 else { continue }
      try identity.look(page, reader, &buffer, &scratch, &attempts)
      if attempts >= maximumAttempts || identity.metadata != nil && identity.cachedModel != nil { break }
    }
    for name in ["Z_METADATA", "Z_MODELCACHE"] {
      guard name == "Z_METADATA" ? identity.metadata == nil : identity.cachedModel == nil,
        let root = entries.first(where: { $0.kind == .table && isSame($0.name, name) })?.rootPage, root > 1,
        root <= map.pageCount, map.look(root) == .tableLeaf
      else { continue }
      var attempts = 0
      try identity.look(root, reader, &buffer, &scratch, &attempts)
    }
    return identity
  }

  private mutating func look(
    _ page: UInt32, _ reader: PageReader, _ buffer: inout [UInt8], _ scratch: inout PageMap, _ attempts: inout Int
  ) throws(SalvageError) {
    guard try reader.readPlace(page, into: &buffer) else { return }
    let chains = OverflowChains(reader)
    let start = page == 1 && buffer[0] != 13 ? DatabaseHeader.length : 0
    guard let count = buffer.span.uint16(at: start + 3), count >= 1, count <= 4 else { return }
    for index in 0..<count {
      guard attempts < Self.maximumAttempts else { return }
      guard let offset = buffer.span.uint16(at: start + 8 + 2 * index),
        let cell = LeafCell(buffer.span, kind: .tableLeaf, at: offset, index: index, geometry: reader.geometry),
        cell.length > 60, cell.length < Self.maximumLength
      else { continue }
      attempts += 1
      var payload = Array(buffer[cell.payload..<(cell.payload + cell.local)])
      if cell.overflow != 0 {
        let outcome = try chains.follow(
          from: cell.overflow, length: cell.length, into: &payload, map: &scratch)
        guard case .whole = outcome else { continue }
      }
      let hadModel = cachedModel != nil
      consider(payload, encoding: reader.layout.encoding)
      if cachedModel != nil, !hadModel { modelPage = page }
    }
  }

  private mutating func consider(_ payload: [UInt8], encoding: TextEncoding) {
    guard let record = Record(payload: payload[...], encoding: encoding), record.isWellFormed else { return }
    let values = record.values
    if values.count >= 3, metadata == nil, case .text = values[1], case .blob(let list) = values[2],
      list.starts(with: Array("bplist".utf8)) || list.starts(with: Array("<?xml".utf8))
    {
      // A property list that cannot be read is no metadata; another page may hold a better one.
      guard let found = try? StoreMetadata(uuid: values[1].string ?? "", propertyList: list),
        !found.versionHashes.isEmpty
      else { return }
      metadata = found
    } else if values.count < 3, cachedModel == nil, case .blob(let bytes)? = values.first {
      // A blob that does not unpack to a model is no model cache.
      cachedModel = try? ManagedObjectModel(modelCache: bytes)
      if cachedModel != nil { modelBytes = bytes }
    }
  }

  /// The model that the store was written with, as far as that can be told.
  func model(in bundle: ModelBundle?) -> ManagedObjectModel? {
    if let hashes = metadata?.versionHashes {
      if let version = bundle?.version(
        matching: hashes, identifiers: metadata?.versionIdentifiers, cached: cachedModel)
      {
        return version.model
      }
      if let cachedModel, cachedModel.versionHashes() == hashes { return cachedModel }
    }
    if let cachedModel {
      let hashes = cachedModel.versionHashes()
      let version = bundle?.version(
        matching: hashes, identifiers: cachedModel.versionIdentifiers, cached: cachedModel)
      return version?.model ?? cachedModel
    }
    if metadata == nil, let notedHashes { return bundle?.version(matching: notedHashes)?.model }
    return nil
  }
}
