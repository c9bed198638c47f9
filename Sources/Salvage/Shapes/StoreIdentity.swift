internal import ManagedObjectModel
internal import PersistentStore
internal import SQLiteFormat

/// The metadata and the cached model of a Core Data store, on whatever page they are.
struct StoreIdentity {
  var metadata: StoreMetadata?

  var cachedModel: ManagedObjectModel?

  /// The packed bytes of the model cache.
  var modelBytes: [UInt8]?

  var modelPage: UInt32?

  /// The version hashes of a recovery kit, used without evidence in the store.
  var notedHashes: [String: VersionHash]?

  /// The most pages tried; each of the two rows is alone on its page.
  private static let maximumAttempts = 256

  private static let maximumLength = 64 << 20

  /// Searches all leaves with few cells of one or three fields, then the tables of the store's own schema.
  ///
  /// - Parameter entries: the readable schema; its tables may have another writer's columns.
  static func find(
    _ reader: PageReader, _ map: PageMap, _ entries: [SchemaEntry]
  ) throws -> StoreIdentity {
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
  ) throws {
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
      // An unreadable property list is no metadata; another page may have a better one.
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

  /// Returns the store's model, if identifiable.
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
