internal import ManagedObjectModel
internal import Platform
internal import SystemPackage

/// A custom mapping that was given and that no step uses.
public struct UnusedMapping: Sendable, Hashable {
  /// Why it is not used.
  public enum Reason: String, Sendable, Hashable, Codable {
    /// It fits two versions that the path does not go between.
    case otherSteps = "other-steps"

    /// Another mapping between the same versions was chosen.
    case otherMapping = "other-mapping"

    /// Its models are of no versions of the bundle: they have been changed since it was made.
    case stale
  }

  /// One side of a stale mapping, next to the version that is most like it.
  public struct Side: Sendable, Hashable {
    /// The version; nil where the bundle has one with just these hashes.
    public var nearestVersion: String?

    /// The entities whose version hashes differ, or which only one of the two has.
    public var entityNames: [String]
  }

  /// The mapping.
  public var mapping: MappingModel

  /// Why it is not used.
  public var reason: Reason

  /// What differs from the version that is most like the source; nothing unless the mapping is stale.
  public var source = Side(nearestVersion: nil, entityNames: [])

  /// What differs from the version that is most like the destination.
  public var destination = Side(nearestVersion: nil, entityNames: [])

  /// Finds out why a mapping is not used.
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

  /// The entities whose hashes differ, in the order of their names.
  static func differing(_ first: [String: VersionHash], _ second: [String: VersionHash]) -> [String] {
    Set(first.keys).union(second.keys).filter { first[$0] != second[$0] }.inCodeUnitOrder()
  }

  /// Why it is not used, in one sentence without a full stop.
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
  /// What it is called: its name, else that of its file.
  public var label: String { name ?? origin.path?.lastComponent?.string ?? "without a name" }
}
