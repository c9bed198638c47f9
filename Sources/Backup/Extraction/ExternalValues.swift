internal import ManagedObjectModel
import PersistentStore
internal import Platform
import SQLiteFormat
package import SystemPackage

extension BackupExtraction {
  /// Writes the external values below a folder, the future `.X_SUPPORT`.
  ///
  /// Lost ones are omitted and named in the result.
  ///
  /// - Parameter isWanted: selects values by file name.
  package func writeExternalData(
    into folder: FilePath, where isWanted: (String) -> Bool = { _ in true }
  ) throws -> Result {
    let own = try manifest
    if own.kind == .original { return try writeOriginalValues(own, into: folder, where: isWanted) }
    return try eachItem(where: isWanted) { path, bytes in
      let path = folder.appending(path)
      try fileSystem.makeDirectory(path.folder)
      let file = try fileSystem.create(path, permissions: .ownerReadWrite)
      try bytes { piece in try file.write(piece) }
      try file.synchronize()
    }
  }

  /// Checks the external values without writing.
  func checkExternalData() throws -> Result { try eachItem { _, _ in } }

  typealias Content = ((ArraySlice<UInt8>) throws -> Void) throws -> Void

  private func eachItem(
    where isWanted: (String) -> Bool = { _ in true }, _ body: ([FilePath.Component], Content) throws -> Void
  ) throws -> Result {
    var result = Result()
    result.damage = archiveDamage
    guard let data = try manifest.externalData else { return result }
    var readers: [BackupIdentifier: ArchiveReader] = [:]
    for backup in chain {
      guard let manifest = backup.manifest, let file = manifest.file(.externalData) else { continue }
      readers[backup.id] = try MemberReader(file, of: manifest, in: place, section).map { ArchiveReader($0) }
    }
    let items = data.items.filter { isWanted($0.name.path?.lastComponent?.string ?? "") }
    let total = BackupManifest.ExternalData(items: items).totalBytes
    var done: Int64 = 0
    let own = try manifest.id
    for item in items {
      // Checked first, so that damaged content gets no file.
      if let path = item.components, let reader = readers[item.backup ?? own], item.bytes >= 0, item.offset >= 0,
        try reader.digest(at: item.offset, length: item.bytes) == item.sha256
      {
        try body(path) { deliver in try reader.read(at: item.offset, length: item.bytes, deliver) }
      } else {
        result.lostItems.append(printable(item.name.text))
      }
      done &+= max(0, item.bytes)
      try advance(.externalData, min(done, total), total)
    }
    return result
  }

  /// Writes the database of an original, with its WAL or after a rollback.
  ///
  /// Without digests only a check can verify it.
  func writeOriginal(_ manifest: BackupManifest, to file: ExtractedFile) throws -> Result {
    let content = try originalContent(manifest)
    let length = Int64(BackupManifest.blockLength)
    var offset: Int64 = 0
    while offset < content.count {
      let wanted = Int(min(length, content.count - offset))
      let bytes = try content.bytes(at: offset, length: wanted)
      guard bytes.count == wanted else {
        throw BackupError(FileError(.changed, operation: "read the original", path: file.path))
      }
      try file.write(bytes[...], at: offset)
      offset += Int64(wanted)
      try advance(.unpacking, offset, content.count)
    }
    return Result()
  }

  /// Returns an original's database, with its WAL or after a rollback.
  func originalContent(_ manifest: BackupManifest) throws -> DatabaseContent {
    func source(_ role: BackupManifest.File.Role) -> ObjectSource? {
      manifest.file(role).flatMap { $0.bytes > 0 ? ObjectSource($0, in: place, section) : nil }
    }
    do throws(FileError) {
      guard let main = source(.originalMain) else {
        throw FileError(.notFound, operation: "read the original", path: FilePath("\(manifest.id)"))
      }
      return DatabaseContent(
        try Database(main: main, writeAheadLog: source(.originalLog), rollbackJournal: source(.originalJournal)))
    } catch { throw BackupError(error, store: FilePath(place.location)) }
  }

  /// Copies an original's external values below a folder.
  func writeOriginalValues(
    _ manifest: BackupManifest, into folder: FilePath, where isWanted: (String) -> Bool
  ) throws -> Result {
    guard manifest.file(.originalSupport) != nil, let place = place as? FolderPlace else { return Result() }
    try fileSystem.copyTree(place.support(of: manifest.id, in: section), to: folder, where: isWanted)
    return Result()
  }
}

extension BackupManifest.ExternalData.Item {
  /// The path below the support folder, unless it leads elsewhere.
  fileprivate var components: [FilePath.Component]? {
    guard let path = name.path, path.isRelative else { return nil }
    let components = Array(path.components)
    guard !components.isEmpty, components.count < 16, components.allSatisfy({ $0.kind == .regular }) else { return nil }
    return components
  }
}

/// Reads ranges of an archive, with a cache of one block.
private final class ArchiveReader {
  private let reader: MemberReader
  private var last: (block: Int, bytes: [UInt8]?)?

  init(_ reader: MemberReader) { self.reader = reader }

  func read(at offset: Int64, length: Int64, _ deliver: (ArraySlice<UInt8>) throws -> Void) throws {
    let blockLength = Int64(BackupManifest.blockLength)
    var position = offset
    // Bounds the ranges of an untrusted manifest.
    let end = offset > reader.content.bytes - length ? offset : offset + length
    while position < end {
      let block = Int(position / blockLength)
      guard let bytes = try block == last?.block ? last?.bytes : load(block) else { return }
      let start = Int(position - Int64(block) * blockLength)
      let stop = min(bytes.count, start + Int(min(blockLength, end - position)))
      guard start < stop else { return }
      try deliver(bytes[start..<stop])
      position += Int64(stop - start)
    }
  }

  private func load(_ block: Int) throws -> [UInt8]? {
    let bytes = try reader.block(block)
    last = (block, bytes)
    return bytes
  }

  func digest(at offset: Int64, length: Int64) throws -> String {
    var digest = RunningDigest()
    try read(at: offset, length: length) { piece in digest.add(Array(piece)) }
    return digest.hexadecimal
  }
}

/// An unpacked object, with a cache of one block.
private final class ObjectSource: ByteSource {
  let count: Int64
  private let name: String
  private let place: any BackupPlace
  private let section: BackupSection
  private let last = Mutex<(block: Int64, bytes: [UInt8])?>(nil)

  init(_ file: BackupManifest.File, in place: any BackupPlace, _ section: BackupSection) {
    count = file.bytes
    name = file.name
    self.place = place
    self.section = section
  }

  func read(at offset: Int64, length: Int, into buffer: inout [UInt8]) throws(FileError) -> Int {
    guard offset >= 0, offset < count, length > 0 else { return 0 }
    let wanted = Int(min(Int64(min(length, buffer.count)), count - offset))
    let blockLength = Int64(BackupManifest.blockLength)
    var done = 0
    while done < wanted {
      let position = offset + Int64(done)
      let bytes = try block(position / blockLength)
      let start = Int(position % blockLength)
      let end = min(bytes.count, start + wanted - done)
      guard start < end else { break }
      buffer.replaceSubrange(done..<(done + end - start), with: bytes[start..<end])
      done += end - start
    }
    return done
  }

  private func block(_ number: Int64) throws(FileError) -> [UInt8] {
    if let known = last.withLock({ $0 }), known.block == number { return known.bytes }
    let bytes: [UInt8]
    do {
      bytes = try place.read(
        name, in: section, at: number * Int64(BackupManifest.blockLength), length: BackupManifest.blockLength)
    } catch {
      let error = BackupError(any: error)
      throw error.fileError ?? FileError(.other, operation: error.operation, path: FilePath(name), detail: error.detail)
    }
    last.withLock { $0 = (number, bytes) }
    return bytes
  }
}

/// The file names of external values that records refer to (format section 3.7).
struct ReferencedValues {
  private(set) var names: Set<String> = []

  /// The names, and all values that may be names, to miss no reference.
  private(set) var possibleNames: Set<String> = []

  private static let folder = "_EXTERNAL_DATA"

  /// References have 38 bytes, but share rows with other values.
  private static let rowLimit = 64 << 20

  /// Reads the references of a Core Data store.
  ///
  /// They are in columns that allow external storage; without a model, any matching blob counts.
  ///
  /// - Parameters:
  ///   - model: the model; the one stored in the store if nil.
  ///   - seeksAll: whether to look for possible names in all blob columns.
  private init(in content: any ByteSource, model: ManagedObjectModel?, seeksAll: Bool) throws(FileError) {
    let database = try Database(main: content)
    let schema = try database.schema()
    guard schema.table(named: "Z_METADATA") != nil else { return }
    let known = if let model { model } else { try Self.ownModel(database, schema) }
    let columns = known.flatMap { Self.columns($0) }
    for table in schema.tables where table.name.lowercased().hasPrefix("z") && table.rootPage > 0 {
      guard let definition = table.tableDefinition, !definition.isWithoutRowid else { continue }
      let all = definition.columns.indices.filter { definition.columns[$0].affinity == .blob }
      let own = columns.map { ($0[table.name.lowercased()] ?? []).compactMap { definition.column(named: $0) } } ?? all
      let places = seeksAll ? Set(all).union(own) : Set(own)
      if places.isEmpty { continue }
      var rows = try database.rows(root: table.rootPage, payloadLimit: Self.rowLimit)
      while let row = try rows.next() {
        let values = definition.values(of: row)
        for place in places where values.indices.contains(place) {
          if case .blob(let bytes) = values[place] { note(bytes, isReference: own.contains(place)) }
        }
      }
    }
  }

  /// Reads the references of a store at a path.
  static func read(
    in content: any ByteSource, of store: FilePath, model: ManagedObjectModel? = nil, seeksAll: Bool = false
  ) throws -> ReferencedValues {
    do throws(FileError) {
      return try ReferencedValues(in: content, model: model, seeksAll: seeksAll)
    } catch {
      throw BackupError(error, store: store)
    }
  }

  private mutating func note(_ bytes: [UInt8], isReference: Bool) {
    guard bytes.first == 2, (3...80).contains(bytes.count) else { return }
    if case .externalData(let name) = RecordValue(.blob(bytes), type: .binary, allowsExternalStorage: true) {
      if isReference { names.insert(name) }
      possibleNames.insert(name)
      return
    }
    let name = bytes.dropFirst().prefix { $0 != 0 }
    guard name.count >= 28, name.allSatisfy({ (0x21...0x7E).contains($0) }) else { return }
    possibleNames.insert(String(decoding: name, as: UTF8.self))
  }

  // MARK: The model

  /// Returns the columns that allow external storage, by lower-case table, if the model has a valid layout.
  private static func columns(_ model: ManagedObjectModel) -> [String: [String]]? {
    guard let layout = try? StoreLayout(model) else { return nil }
    var columns: [String: [String]] = [:]
    for table in layout.tables {
      for column in table.columns {
        guard case .attribute(let key, _) = column.role,
          model.entities[key.entityName]?.properties[key.name]?.attribute?.allowsExternalBinaryDataStorage == true
        else { continue }
        columns[table.name.lowercased(), default: []].append(column.name)
      }
    }
    return columns
  }

  /// Returns the stored model, unless of another version.
  private static func ownModel(_ database: Database, _ schema: Schema) throws(FileError) -> ManagedObjectModel? {
    guard let cache = try bytes("Z_CONTENT", of: "Z_MODELCACHE", database, schema),
      let list = try bytes("Z_PLIST", of: "Z_METADATA", database, schema)
    else { return nil }
    guard let model = try? ManagedObjectModel(modelCache: cache),
      let metadata = try? StoreMetadata(uuid: "", propertyList: list)
    else { return nil }
    return model.versionHashes() == metadata.versionHashes ? model : nil
  }

  private static func bytes(
    _ column: String, of table: String, _ database: Database, _ schema: Schema
  ) throws(FileError) -> [UInt8]? {
    guard let table = schema.table(named: table), table.rootPage > 0, let definition = table.tableDefinition,
      let place = definition.column(named: column)
    else { return nil }
    var rows = try database.rows(root: table.rootPage, payloadLimit: rowLimit)
    guard let row = try rows.next() else { return nil }
    let values = definition.values(of: row)
    guard values.indices.contains(place), case .blob(let bytes) = values[place] else { return nil }
    return bytes
  }

  // MARK: The files

  func missing(from store: StoreFileSet, in fileSystem: FileSystem) throws(FileError) -> [String] {
    names.subtracting(try store.largeValueNames(in: fileSystem)).sorted().map(Self.path)
  }

  func missing(from data: BackupManifest.ExternalData?) -> [String] {
    let known = Set(data?.items.map(\.name.text) ?? [])
    return names.sorted().map(Self.path).filter { !known.contains($0) }
  }

  static func path(_ name: String) -> String { "\(folder)/\(name)" }
}
