import ManagedObjectModel
import PersistentStore
import Platform

/// The version of an app's model that comes nearest to a store of none of them, with what differs.
struct NearestVersion: Encodable {
  /// An entity of either that is not the same in both.
  struct Entity: Encodable {
    var name: String

    /// `added` for one that only the version has, `removed` for one that only the store has, else `changed`.
    var change: String

    /// What differs, a line for each property; empty where the store carries no model.
    var differences: [String]
  }

  /// The name of the version.
  var name: String

  /// How many entities are the same.
  var equal: Int

  /// The entities that are not, by name.
  var entities: [Entity]

  /// The nearest version; nil where the store is of one, or has no entity in common with any.
  init?(to examination: Examination, in model: AppModel?) {
    guard case .coreData(let bundle)? = model, examination.kind == .coreData, examination.modelVersion == nil,
      let hashes = examination.metadata?.versionHashes, !hashes.isEmpty
    else { return nil }
    let versions = bundle.unorderedVersions + bundle.versions
    func distance(_ version: ModelVersion) -> Int {
      Set(version.versionHashes.keys).union(hashes.keys).count { version.versionHashes[$0] != hashes[$0] }
    }
    // Of several the newest.
    guard let least = versions.map(distance).min(), let nearest = versions.last(where: { distance($0) == least })
    else { return nil }
    let own = nearest.versionHashes
    guard !Set(own.keys).isDisjoint(with: hashes.keys) else { return nil }
    name = nearest.name
    equal = own.count { hashes[$0.key] == $0.value }
    let difference = examination.storeModel.map { ModelDifference(from: $0, to: nearest.model) }
    entities = Set(own.keys).union(hashes.keys).sorted(by: precedesByCodeUnit).filter { own[$0] != hashes[$0] }
      .map { name in
        Entity(
          name: name, change: hashes[name] == nil ? "added" : own[name] == nil ? "removed" : "changed",
          differences: difference.map { Self.differences($0, of: name) } ?? [])
      }
  }

  private static func differences(_ difference: ModelDifference, of entity: String) -> [String] {
    func lines(_ list: [ModelDifference.PropertyDifference], _ word: String) -> [String] {
      list.filter { $0.entity == entity }.map { property in
        "\(printable(property.property)): "
          + (property.changes.isEmpty ? word : property.changes.joined(separator: ", "))
      }
    }
    return lines(difference.removedProperties, "only in the store")
      + lines(difference.addedProperties, "only in the version") + lines(difference.changedProperties, "changed")
      + (difference.entityChanges[entity] ?? [])
  }

  /// The difference in words, for a terminal.
  var text: String {
    var lines = "\n  nearest version: \(printable(name)), \(counted(equal, "entity", "entities")) the same\n"
    for entity in entities.prefix(50) {
      let word =
        switch entity.change {
        case "added": "only in the version"
        case "removed": "only in the store"
        default: "differs"
        }
      lines += "    \(printable(entity.name)): \(word)\n"
      for difference in entity.differences.prefix(20) { lines += "      \(difference)\n" }
      if entity.differences.count > 20 { lines += "      and \(entity.differences.count - 20) more\n" }
    }
    if entities.count > 50 { lines += "    and \(entities.count - 50) more\n" }
    return lines
  }
}
