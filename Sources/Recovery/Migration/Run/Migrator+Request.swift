internal import ManagedObjectModel
internal import StoreFiles

extension Migrator {
  /// The digest of everything that decides what a migration makes of a store: versions, mappings, policies and stages.
  ///
  /// The code of policies and handlers is not part of it, only which there are.
  func request(_ options: Options) -> String {
    var parts = bundle.versions.map { "\($0.name) \($0.checksum) \(Self.unhashed($0.model))" }
    parts.append("repair \(options.repair.rawValue) \(options.onlyRepairs)")
    parts.append("names \(options.matchesNames)")
    parts += ["to \(options.version ?? bundle.current.name)", "direct \(options.isDirect)"]
    parts += options.via.map { "via \($0)" } + ["losses \(options.whenMigrationLoses.rawValue)"]
    parts += ["rebuild \(options.alwaysRebuilds)"]
    for mapping in options.mappings { parts += Self.parts(of: mapping) }
    parts += options.policies.names.map { "policy \($0)" }
    parts += options.stages.map { stage in
      "stage \(stage.source ?? "") \(stage.destination ?? "") \(stage.willMigrate != nil) \(stage.didMigrate != nil)"
    }
    parts += options.userInfo.ordered { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
    return FileDigest(of: Array(parts.joined(separator: "\n").utf8)).hexadecimal
  }

  /// What version hashes do not say of a model and what decides about values all the same: renaming identifiers, defaults.
  private static func unhashed(_ model: ManagedObjectModel) -> String {
    var parts: [String] = []
    for entity in model.entities.values.ordered(by: { precedesByCodeUnit($0.name, $1.name) }) {
      if let identifier = entity.explicitRenamingIdentifier { parts.append("\(entity.name)=\(identifier)") }
      for property in entity.properties.values.ordered(by: { precedesByCodeUnit($0.name, $1.name) }) {
        let identifier = property.traits.explicitRenamingIdentifier
        let value = property.attribute?.defaultValue?.plainText
        guard identifier != nil || value != nil else { continue }
        parts.append("\(entity.name).\(property.name)=\(identifier ?? "") \(value ?? "")")
      }
    }
    return FileDigest(of: Array(parts.joined(separator: "\n").utf8)).hexadecimal
  }

  private static func parts(of mapping: MappingModel) -> [String] {
    var parts = [
      "mapping \(ManagedObjectModel.versionChecksum(of: mapping.sourceHashes)) "
        + ManagedObjectModel.versionChecksum(of: mapping.destinationHashes)
    ]
    for entity in mapping.entityMappings {
      parts.append(
        "\(entity.name) \(entity.kind) \(entity.sourceEntityName ?? "") \(entity.destinationEntityName ?? "") "
          + "\(entity.policyClassName ?? "") \(entity.sourceFilter.map { "\($0)" } ?? "")")
      parts += entity.userInfo.ordered { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
      for property in entity.propertyMappings {
        parts.append("\(property.destination) \(property.value) \(property.replacesNilWithDefault)")
        parts += property.userInfo.ordered { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
      }
    }
    return parts
  }
}
