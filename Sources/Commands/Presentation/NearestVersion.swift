import ManagedObjectModel
import PersistentStore
import Platform

/// The model version closest to a store of an unknown version, with the differences.
struct NearestVersion: Encodable {
  struct Entity: Encodable {
    var name: String

    /// `added` if only the version has it, `removed` if only the store has it, else `changed`.
    var change: String

    /// A line a property; empty if the store carries no model.
    var differences: [String]
  }

  var name: String

  var equal: Int

  var entities: [Entity]

  /// Finds the closest version; nil for a known version or without a common entity.
  init?(to examination: Examination, in model: AppModel?) {
    guard case .coreData(let bundle)? = model, examination.kind == .coreData, examination.modelVersion == nil,
      let hashes = examination.metadata?.versionHashes, !hashes.isEmpty
    else { return nil }
    let versions = bundle.unorderedVersions + bundle.versions
    func distance(_ version: ModelVersion) -> Int {
      Set(version.versionHashes.keys).union(hashes.keys).count { version.versionHashes[$0] != hashes[$0] }
    }
    // On a tie, the newest.
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
