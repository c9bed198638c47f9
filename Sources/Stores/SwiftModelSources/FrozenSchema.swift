public import ManagedObjectModel
public import StoreFiles

/// A version of a model as a `VersionedSchema` in Swift, with classes of its own that later changes do not reach.
///
/// Its hashes equal the version's; that is checked by reading the text back. Enumerations and structures become structures
/// with the same elements: the same columns, the same hashes, and every value that a store may hold can be read.
public struct FrozenSchema: Sendable {
  /// The name of the schema.
  public let name: String

  /// The declarations.
  public let text: String

  /// Declares a version of a model.
  ///
  /// - Parameters:
  ///   - model: the version; of a store, of sources, or of any other model that SwiftData could have made.
  ///   - name: the name of the schema.
  /// - Throws: `model-unwritable` where SwiftData has no declaration for something of the model, or where the text read
  ///   back has other hashes.
  public init(_ model: ManagedObjectModel, name: String) throws(ModelError) {
    self.name = name
    var writer = SchemaWriter(model: model)
    text = try writer.write(name)
    let found = try Self.hashes(in: Array(text.utf8), schema: name)
    let wanted = model.versionHashes()
    let names = Set(wanted.keys).union(found.keys).sorted(by: precedesByCodeUnit)
    guard let other = names.first(where: { wanted[$0] != found[$0] }) else { return }
    throw Self.unwritable("entity \"\(printable(other))\" would get another hash", entity: other)
  }

  /// The hashes that a schema has in the text of a source file.
  ///
  /// - Throws: `model-unknown-type` where it is not there, `model-unresolved-source` where it is not complete.
  public static func hashes(in text: [UInt8], schema: String) throws(ModelError) -> [String: VersionHash] {
    try version(in: text, schema: schema).versionHashes
  }

  /// The version that a schema declares in the text of a source file.
  ///
  /// - Throws: `model-unknown-type` where it is not there, `model-unresolved-source` where it is not complete.
  public static func version(in text: [UInt8], schema: String) throws(ModelError) -> ModelVersion {
    guard SwiftSources.isAvailable else {
      throw ModelError(.sourcesNotBuiltIn, detail: "this build of Lazaret does not read Swift sources")
    }
    let models = try SwiftSources.read(
      [(file: "\(schema).swift", text: text)], options: SwiftSources.Options(types: [schema]))
    return try models.bundle().current
  }

  /// The error of something that has no declaration.
  static func unwritable(_ detail: String, entity: String? = nil, property: String? = nil) -> ModelError {
    var error = ModelError(
      .unwritable, operation: "declare the model in Swift", detail: detail,
      hint: "Write this part of the schema by hand.")
    error.entityName = entity
    error.propertyName = property
    return error
  }
}
