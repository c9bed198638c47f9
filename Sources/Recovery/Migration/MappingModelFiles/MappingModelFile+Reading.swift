internal import PropertyLists
internal import StoreFiles
internal import SystemPackage

extension MappingModelFile {
  /// The largest file that is read, in bytes; real ones have a hundred kilobytes.
  static let maximumFileSize = 32 << 20

  /// More entity mappings than any mapping model has.
  static let maximumEntityMappings = 2_000

  /// More property mappings than any mapping model has, all entities together.
  static let maximumPropertyMappings = 200_000

  /// The longest name, in bytes.
  static let maximumNameLength = 1_024

  /// Reads a mapping model.
  ///
  /// - Parameter path: a `.xcmappingmodel` folder, the `xcmapping.xml` in it, or a `.cdm` file.
  /// - Throws: `mapping-invalid` where it is none or is damaged, or a file error.
  static func read(_ path: FilePath, _ fileSystem: FileSystem) throws(MigrationError) -> MappingModelFile {
    var file = path
    try wrapping(MigrationError.init) { () throws(FileError) in
      guard let status = try fileSystem.status(of: path) else {
        throw FileError(.notFound, operation: operation, path: path)
      }
      if status.kind == .directory {
        file = path.appending(MappingModelFiles.sourceFileName)
        guard try fileSystem.status(of: file) != nil else {
          throw FileError(
            .notFound, operation: operation, path: file,
            detail: "the folder has no \(MappingModelFiles.sourceFileName)")
        }
      }
    }
    let bytes = try wrapping(MigrationError.init) { () throws(FileError) in
      try fileSystem.contents(of: file, limit: maximumFileSize)
    }
    return try read(bytes, at: path)
  }

  static let operation = "read the mapping model"

  /// Reads a mapping model from its bytes, whichever of the two forms they are in.
  static func read(_ bytes: [UInt8], at path: FilePath) throws(MigrationError) -> MappingModelFile {
    do {
      if XMLTree.looksLikeXML(bytes) {
        var reader = MappingModelSourceReader(path: path)
        return try reader.read(bytes)
      }
      var reader = CompiledMappingModelReader(path: path)
      return try reader.read(bytes)
    } catch let error as PropertyListError {
      throw MigrationError(.mappingInvalid, because: error, operation: operation, path: path)
    } catch let error as MigrationError {
      throw error
    } catch {
      throw MigrationError(.mappingInvalid, operation: operation, path: path, detail: "it cannot be read")
    }
  }

  /// The error of a file that is no mapping model or a damaged one.
  static func invalid(_ path: FilePath, _ detail: String, entity: String? = nil) -> MigrationError {
    MigrationError(.mappingInvalid, operation: operation, path: path, detail: detail, entityName: entity)
  }

  /// Names that are missing are made as Xcode's compiler makes them, and every name must be there once.
  mutating func finish() throws(MigrationError) {
    // Xcode's editor leaves entries without entities, which Core Data passes over.
    emptyCount = entityMappings.count { $0.sourceName == nil && $0.destinationName == nil }
    entityMappings.removeAll { $0.sourceName == nil && $0.destinationName == nil }
    guard !entityMappings.isEmpty else { throw Self.invalid(path, "it maps no entity") }
    var names: Set<String> = []
    for index in entityMappings.indices {
      let record = entityMappings[index]
      // Names are put together and repeated; an archive may use a long one over and over.
      let texts = [record.name, record.sourceName ?? "", record.destinationName ?? "", record.policyClassName ?? ""]
      guard texts.allSatisfy({ $0.utf8.count <= Self.maximumNameLength }) else {
        throw Self.invalid(path, "it holds a name of more than \(Self.maximumNameLength) bytes")
      }
      if record.name.isEmpty {
        let both = [record.sourceName, record.destinationName].compactMap { $0 }
        entityMappings[index].name = both.joined(separator: "To")
      }
      let name = entityMappings[index].name
      guard names.insert(name).inserted else {
        throw Self.invalid(path, "it has two mappings called \"\(printable(name))\"", entity: record.destinationName)
      }
    }
  }
}
