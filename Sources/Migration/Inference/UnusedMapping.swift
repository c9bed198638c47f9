internal import ManagedObjectModel
internal import Platform
internal import SystemPackage

/// A given custom mapping that no step uses.
public struct UnusedMapping: Sendable, Hashable {
  /// The reason it is unused.
  public enum Reason: String, Sendable, Hashable, Codable {
    /// It connects versions off the path.
    case otherSteps = "other-steps"

    /// Another mapping of the same versions was chosen.
    case otherMapping = "other-mapping"

    /// Its models match no version: they changed since it was made.
    case stale
  }

  /// One side of a stale mapping, compared with the most similar version.
  public struct Side: Sendable, Hashable {
    /// The version; nil if the bundle has one of equal hashes.
    public var nearestVersion: String?

    /// The entities that differ or exist on one side only.
    public var entityNames: [String]
  }

  /// The mapping.
  public var mapping: MappingModel

  /// The reason it is unused.
  public var reason: Reason

  /// The source's differences; empty unless the mapping is stale.
  public var source = Side(nearestVersion: nil, entityNames: [])

  /// The destination's differences.
  public var destination = Side(nearestVersion: nil, entityNames: [])

  init(_ mapping: MappingModel, in bundle: ModelBundle, steps: [MigrationStep]) {
    self.mapping = mapping
    let sources = bundle.versions.map(\.versionHashes) + (steps.first.map { [$0.mapping.sourceHashes] } ?? [])
    let fitsSource = sources.contains(mapping.sourceHashes)
    let fitsDestination = bundle.versions.contains { $0.versionHashes == mapping.destinationHashes }
    if steps.contains(where: { $0.alternatives.contains(mapping) }) {
      reason = .otherMapping
    } else {
      reason = fitsSource && fitsDestination ? .otherSteps : .stale
    }
    if !fitsSource { source = Self.side(mapping.sourceHashes, bundle) }
    if !fitsDestination { destination = Self.side(mapping.destinationHashes, bundle) }
  }

  private static func side(_ hashes: [String: VersionHash], _ bundle: ModelBundle) -> Side {
    var best: Side?
    for version in bundle.versions {
      let names = differing(hashes, version.versionHashes)
      if best.map({ names.count < $0.entityNames.count }) ?? true {
        best = Side(nearestVersion: version.name, entityNames: names)
      }
    }
    return best ?? Side(nearestVersion: nil, entityNames: [])
  }

  static func differing(_ first: [String: VersionHash], _ second: [String: VersionHash]) -> [String] {
    Set(first.keys).union(second.keys).filter { first[$0] != second[$0] }.inCodeUnitOrder()
  }

  /// The reason as a sentence without a full stop.
  public var text: String {
    let name = "mapping \"\(printable(mapping.label))\""
    switch reason {
    case .otherSteps: return "\(name) is between versions that the migration does not go between"
    case .otherMapping: return "\(name) is between the same versions as another one, which was chosen by its name"
    case .stale:
      let sides = [("source", source), ("destination", destination)].compactMap { word, side in
        side.nearestVersion.map { version in
          "its \(word) differs from \(printable(version)) in "
            + side.entityNames.prefix(10).map(printable).joined(separator: ", ")
            + (side.entityNames.count > 10 ? " and \(side.entityNames.count - 10) more" : "")
        }
      }
      return "\(name) fits no versions of the model: \(sides.joined(separator: "; "))"
    }
  }
}

extension MappingModel {
  /// The name, else the file's.
  public var label: String { name ?? origin.path?.lastComponent?.string ?? "without a name" }
}
