import HTTPServer
import Inbox
import Inspector
import Lazaret
import LazaretTesting
import ManagedObjectModel
import PersistentStore
import Platform
import SystemPackage
import TestSupport
import Testing

/// A home with stores, and an inspector of it.
struct Scene {
  let folder: TemporaryFolder
  let home: FilePath

  init() throws {
    folder = try TemporaryFolder()
    home = folder.path.appending("Home")
    try FileSystem().makeDirectory(home)
    try FileSystem().makeDirectory(home.appending("Stores"))
  }

  // MARK: The model

  /// A model with a parent, a relationship, and two versions of which the second adds a property.
  static func bundle(_ name: String = "App", carName: String = "Car") throws -> ModelBundle {
    func model(_ properties: [String]) -> ManagedObjectModel {
      let attributes = properties.map { name in
        Property.attribute(Attribute(traits: PropertyTraits(name: name, isOptional: true), type: .string))
      }
      return ManagedObjectModel(entities: [Entity(name: carName, properties: attributes)])
    }
    let versions = [
      ModelVersion(name: "V1", model: model(["name"]), isCurrent: false),
      ModelVersion(name: "V2", model: model(["name", "color"]), isCurrent: true),
    ]
    return try #require(ModelBundle(name: name, versions: versions))
  }

  // MARK: Stores

  var stores: FilePath { home.appending("Stores") }

  /// Makes a store of the newest version, or of another one.
  @discardableResult
  func make(
    _ name: String, bundle: ModelBundle, version: String = "V2", records: Int = 40
  ) throws -> FilePath {
    let model = try #require(bundle.version(named: version)).model
    let path = stores.appending(name)
    _ = try StoreGenerator(model, options: .init(.sparse, seed: 7, records: records)).write(to: path)
    return path
  }

  /// Makes a damaged store.
  @discardableResult
  func makeDamaged(
    _ name: String, bundle: ModelBundle, _ kinds: [String] = ["header:zero", "zero:20"], records: Int = 400
  )
    throws -> FilePath
  {
    let whole = try make("Whole.sqlite", bundle: bundle, records: records)
    let path = stores.appending(name)
    _ = try DamagedCopy.make(of: whole, at: path, kinds: try kinds.map { try DamageKind($0) }, seed: 3)
    try FileSystem().unlink(whole)
    return path
  }

  /// Makes a home with one of everything: a quarantined store that was salvaged and installed, one that was not, live ones,
  /// backups.
  static func full() throws -> (scene: Scene, bundle: ModelBundle) {
    let scene = try Scene()
    let bundle = try Self.bundle()
    try scene.makeDamaged("App.sqlite", bundle: bundle)
    var policy = OpeningPolicy()
    policy.recoveryKitInterval = nil
    policy.checkInterval = nil
    let opening = try StoreCoordinator(
      model: .coreData(bundle), policy: policy, home: scene.home, appVersion: "7.1", surroundings: .still()
    ).open(scene.stores.appending("App.sqlite"))
    try opening.store.close()
    try scene.makeDamaged("Other.sqlite", bundle: bundle, ["roots"])
    _ = try Quarantines(home: scene.home, surroundings: .still(at: "2026-11-22T10:11:12Z")).add(
      scene.stores.appending("Other.sqlite"))
    try scene.make("Old.sqlite", bundle: bundle, version: "V1")
    let live = try scene.make("Live.sqlite", bundle: bundle)
    _ = try Backups(home: scene.home, surroundings: .still()).create(live)
    // What SQLite leaves where children of other tests share its locks.
    for name in try FileSystem().entries(of: scene.stores) where name.string.hasSuffix("-shm") {
      try FileSystem().unlink(scene.stores.appending(name))
    }
    return (scene, bundle)
  }

  // MARK: The inspector

  /// An inspector of the home.
  func inspector(
    _ models: [ModelBundle] = [], allowsActions: Bool = true, receives: Bool = false,
    surroundings: Surroundings = .machine
  ) throws -> Inspector {
    try Self.inspector(
      of: home, models, allowsActions: allowsActions, receives: receives, surroundings: surroundings)
  }

  /// An inspector of a folder as it is.
  static func inspector(
    of home: FilePath, _ models: [ModelBundle] = [], allowsActions: Bool = true, receives: Bool = false,
    surroundings: Surroundings = .machine
  ) throws -> Inspector {
    var options = InspectorOptions(
      home: home, publicFolder: RealMaterial.projectRoot.appending("Public"))
    options.models = InspectorModel.named(models.map { ($0.name, AppModel.coreData($0)) })
    options.allowsActions = allowsActions
    if receives { options.inbox = try Inbox(home: home, surroundings: surroundings) }
    return try Inspector(options, sessions: Sessions(cookieName: "lazaret"), surroundings: surroundings)
  }
}
