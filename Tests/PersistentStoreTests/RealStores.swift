import Foundation
import ManagedObjectModel
import PersistentStore
import SystemPackage

/// The real stores and models beside the project, where they are.
enum RealStores {
  /// The folder, or nil where it is missing.
  static let folder: FilePath? = {
    let root = FilePath(#filePath).removingLastComponent().removingLastComponent().removingLastComponent()
    let place =
      ProcessInfo.processInfo.environment["LAZARET_REAL"].map { FilePath($0) }
      ?? root.removingLastComponent().appending("shared").appending("real")
    return FileManager.default.fileExists(atPath: place.appending("stores").string) ? place : nil
  }()

  static let isThere = folder != nil

  /// The stores, by their paths below `stores/`.
  static let names: [String] = {
    guard let folder, let all = FileManager.default.enumerator(atPath: folder.appending("stores").string) else {
      return []
    }
    return all.compactMap { $0 as? String }.filter { $0.hasSuffix(".sqlite") }.sorted()
  }()

  /// A private copy of a store and the files that belong to it.
  static func copy(_ name: String, into scratch: ScratchFolder) throws -> FilePath {
    guard let folder else { throw CancellationError() }
    let source = folder.appending("stores").string + "/" + name
    let target = scratch.path.appending("Store.sqlite")
    for suffix in ["", "-wal"] where FileManager.default.fileExists(atPath: source + suffix) {
      try Data(contentsOf: URL(fileURLWithPath: source + suffix)).write(
        to: URL(fileURLWithPath: target.string + suffix))
    }
    return target
  }

  /// The model of a store: its own cached one, else the version among the models that has the same hashes.
  static func model(of store: PersistentStore) throws -> ManagedObjectModel? {
    if let cache = try store.modelCache() { return try ManagedObjectModel(modelCache: cache) }
    guard let hashes = try store.metadata()?.versionHashes else { return nil }
    if let found = sourceModels.first(where: { $0.versionHashes == hashes }) { return found.model }
    return recipes.versionHashes() == hashes ? recipes : nil
  }

  /// The model of Apple's Recipes sample, whose source is in the form of Xcode 3 that is not read; its hashes prove it.
  private static let recipes: ManagedObjectModel = {
    func demanding(_ property: Property, isOptional: Bool = true) -> Property {
      switch property {
      case .attribute(var attribute):
        attribute.traits.isOptional = false
        return .attribute(attribute)
      case .relationship(var relationship):
        relationship.minimumCount = 1
        relationship.traits.isOptional = isOptional
        return .relationship(relationship)
      case .fetchedProperty: return property
      }
    }
    return ManagedObjectModel(entities: [
      Entity(
        name: "Image",
        properties: [
          attribute("image", .transformable), demanding(toOne("recipe", "Recipe", inverse: "image"), isOptional: false),
        ]),
      Entity(
        name: "Ingredient",
        properties: [
          attribute("amount", .string), demanding(attribute("name", .string)),
          demanding(attribute("displayOrder", .integer16)),
          demanding(toOne("recipe", "Recipe", inverse: "ingredients")),
        ]),
      Entity(
        name: "RecipeType", properties: [attribute("name", .string), toMany("recipes", "Recipe", inverse: "type")]),
      Entity(
        name: "Recipe",
        properties: ["name", "instructions", "overview", "prepTime"].map { attribute($0, .string) } + [
          attribute("thumbnailImage", .transformable), demanding(toOne("image", "Image", inverse: "recipe")),
          demanding(toOne("type", "RecipeType", inverse: "recipes")),
          toMany("ingredients", "Ingredient", inverse: "recipe"),
        ]),
    ])
  }()

  /// All versions of all models that can be read.
  private static let sourceModels: [ModelVersion] = {
    guard let folder, let all = FileManager.default.enumerator(atPath: folder.appending("models").string) else {
      return []
    }
    return all.compactMap { $0 as? String }
      .filter { $0.hasSuffix(".xcdatamodeld") || $0.hasSuffix(".xcdatamodel") || $0.hasSuffix(".momd") }.sorted()
      .flatMap { name -> [ModelVersion] in
        let path = FilePath(folder.appending("models").string + "/" + name)
        return (try? ModelBundle.load(path: path))?.versions ?? []
      }
  }()
}
