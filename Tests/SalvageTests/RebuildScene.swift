import GRDB
import LazaretTesting
import ManagedObjectModel
import PersistentStore
import Salvage
import SystemPackage
import TestSupport

/// A generated store with everything that a rebuild sees to, and what becomes of damaged copies of it.
struct RebuildScene {
  let folder: TemporaryFolder
  let bundle: ModelBundle
  let store: FilePath

  /// The model of the store: a hierarchy, references to it, a many-to-many and an ordered relationship, a constraint.
  static func model(hasRemark: Bool = false) -> ManagedObjectModel {
    var extra: [Property] = []
    if hasRemark { extra.append(attribute("remark", .string)) }
    return ManagedObjectModel(entities: [
      Entity(
        name: "Ship",
        properties: [
          attribute("name", .string, isOptional: false), attribute("tons", .integer32), attribute("log", .string),
          toMany("crew", "Person", "ship", isOrdered: true), toMany("ports", "Port", "ships"),
          toMany("flags", "Flag", nil),
        ] + extra),
      Entity(name: "Ferry", parentName: "Ship", properties: [attribute("seats", .integer16)]),
      Entity(
        name: "Person",
        properties: [
          attribute("name", .string, isOptional: false), attribute("born", .date), toOne("ship", "Ship", "crew"),
        ], uniquenessConstraints: [["name"]]),
      Entity(name: "Port", properties: [attribute("name", .string), toMany("ships", "Ship", "ports")]),
      Entity(name: "Flag", properties: [attribute("color", .string)]),
    ])
  }

  private static func attribute(_ name: String, _ type: AttributeType, isOptional: Bool = true) -> Property {
    .attribute(Attribute(traits: PropertyTraits(name: name, isOptional: isOptional), type: type))
  }

  private static func toOne(_ name: String, _ destination: String, _ inverse: String) -> Property {
    .relationship(
      Relationship(
        traits: PropertyTraits(name: name, isOptional: true), destinationEntityName: destination, inverseName: inverse))
  }

  private static func toMany(
    _ name: String, _ destination: String, _ inverse: String?, isOrdered: Bool = false
  ) -> Property {
    .relationship(
      Relationship(
        traits: PropertyTraits(name: name, isOptional: true), destinationEntityName: destination, inverseName: inverse,
        maximumCount: 0, isOrdered: isOrdered))
  }

  /// The store's version and a later one.
  static func bundle() throws -> ModelBundle {
    struct NoVersions: Error {}
    guard
      let bundle = ModelBundle(
        name: "Ships",
        versions: [
          ModelVersion(name: "V1", model: Self.model(), isCurrent: false),
          ModelVersion(name: "V2", model: Self.model(hasRemark: true), isCurrent: true),
        ])
    else { throw NoVersions() }
    return bundle
  }

  init(seed: UInt64, records: Int = 400, journal: StoreGenerator.Journal = .none) throws {
    folder = try TemporaryFolder()
    bundle = try Self.bundle()
    store = folder.appending("Ships.sqlite")
    try StoreGenerator(
      Self.model(), options: .init(.typical, seed: seed, records: records, journal: journal)
    ).write(to: store)
  }

  /// What came out of a rebuild, held against the undamaged store.
  struct Result {
    let report: SalvageReport
    let folder: TemporaryFolder
    let store: FilePath
    let differences: [StoreDifference]

    /// The differences of a kind.
    func count(_ kind: StoreDifference.Kind) -> Int { differences.count { $0.kind == kind } }
  }

  /// Salvages a store and compares the result with the undamaged one; the result must open and be sound.
  func rebuild(_ damaged: FilePath, withModel: Bool = true, migrates: Bool = false) throws -> Result {
    let results = try TemporaryFolder()
    let out = results.appending("Out.sqlite")
    let report = try Salvager().salvage(
      damaged, to: out, model: withModel ? .coreData(bundle) : nil, options: .init(migrates: migrates))
    let model = migrates ? Self.model(hasRemark: true) : Self.model()
    struct Unsound: Error { var verdict = "" }
    guard
      let version = ModelBundle(
        name: "Ships", versions: [ModelVersion(name: "V", model: model, isCurrent: true)])
    else { throw Unsound() }
    let examination = try Examiner().examine(out, model: .coreData(version), options: .init(depth: .full))
    guard examination.verdict == .compatible, !examination.health.isDamaged else {
      throw Unsound(verdict: "\(examination.verdict): \(examination.reason) \(examination.health)")
    }
    // Comparing opens the store, which must not change it.
    let copy = try RealMaterial.copy(store, into: results, as: "Original.sqlite")
    let first = try PersistentStore(opening: copy, model: Self.model())
    let second = try PersistentStore(opening: out, model: model)
    var options = StoreComparison.Options()
    options.limit = 100_000
    let comparison = try StoreComparison(first, second, options: options)
    try first.close()
    try second.close()
    return Result(report: report, folder: results, store: out, differences: comparison.differences)
  }

  /// A damaged copy.
  func damaged(_ kind: String, seed: UInt64) throws -> FilePath {
    let place = folder.appending("Damaged-\(kind.filter { $0.isLetter || $0.isNumber })-\(seed).sqlite")
    _ = try DamagedCopy.make(of: store, at: place, kinds: [try DamageKind(kind)], seed: seed)
    return place
  }

  /// Changes the store itself by SQL, past all rules.
  func change(_ statements: String...) throws {
    let opened = try PersistentStore(opening: store)
    try opened.write { database in
      for statement in statements { try database.execute(sql: statement) }
    }
    try opened.close()
  }
}
