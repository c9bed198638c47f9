internal import ManagedObjectModel
internal import SystemPackage

/// One of Core Data's own mapping models as its file says it, before it is fitted to two versions of a model.
///
/// Sources (`.xcmappingmodel`) and compiled ones (`.cdm`) say the same in different words; what only one of them says is
/// optional.
struct MappingModelFile {
  /// What a file of mapping models is.
  enum Format: Sendable, Hashable {
    /// `.xcmappingmodel`: an XML store of Xcode's, which its compiler makes a `.cdm` of.
    case source

    /// `.cdm`: a keyed archive.
    case compiled
  }

  /// One of the two models that the file was made for.
  struct Side {
    /// Where the project kept the model; only sources say it.
    var modelPath: String?

    /// The model itself, as sources embed it; nil where it is not there or cannot be read.
    var model: EditorModel?

    /// The name of the version, from the path: `V2` for `Model.xcdatamodeld/V2.xcdatamodel`.
    var versionName: String? {
      guard let name = modelPath?.split(separator: "/").last, let stem = FilePath(String(name)).stem else { return nil }
      return stem
    }
  }

  let path: FilePath
  let format: Format
  var source = Side()
  var destination = Side()

  /// The mappings in the order in which the file has them carried out.
  var entityMappings: [EntityRecord] = []

  /// How many entries that name no entity were passed over.
  var emptyCount = 0

  /// The name: that of the file.
  var name: String {
    let isInner = path.lastComponent?.string == MappingModelFiles.sourceFileName
    return (isInner ? path.removingLastComponent() : path).stem ?? ""
  }

  /// Where a mapping model made of it came from.
  var origin: MappingModel.Origin {
    switch format {
    case .source: .mappingModelSource(path)
    case .compiled: .compiledMappingModel(path)
    }
  }
}

extension MappingModelFile {
  /// A mapping of an entity.
  struct EntityRecord {
    var name: String
    var sourceName: String?
    var destinationName: String?

    /// The version hash that the source's entity had; only compiled ones say it.
    var sourceHash: VersionHash?

    /// The version hash that the destination's entity had; only compiled ones say it.
    var destinationHash: VersionHash?

    /// The type that the file gives it, by Core Data's number; sources leave it undefined.
    var type = EntityMapping.Kind.undefined

    var policyClassName: String?
    var filter = Filter.all
    var attributes: [PropertyRecord] = []
    var relationships: [PropertyRecord] = []
    var userInfo: [String: String] = [:]

    /// Whether a policy of the app's own may make values; Core Data's own does what the mapping says and nothing else.
    var hasPolicy: Bool { policyClassName != nil && policyClassName != "NSEntityMigrationPolicy" }
  }

  /// Which records of the source a mapping reads.
  enum Filter {
    /// All records of the entity.
    case all

    /// Those that a predicate is true for, in predicate format.
    case predicate(String)

    /// Those that an expression of another form gives.
    case expression(ModelExpression)
  }

  /// A mapping of a property.
  struct PropertyRecord {
    var name: String
    var value: Value
    var userInfo: [String: String] = [:]
  }

  /// Where a property gets its value from.
  enum Value {
    /// Nothing is said: the destination's default, or no records.
    case nothing

    /// Xcode's compiler makes the expression: from the property of the same name, where the source has one.
    case generated

    /// Xcode's compiler makes the expression: what a mapping made of what a key path leads to.
    case through(mapping: String?, keyPath: String?)

    case expression(ModelExpression)

    /// An expression that cannot be read, and what it is.
    case unreadable(String)
  }
}
