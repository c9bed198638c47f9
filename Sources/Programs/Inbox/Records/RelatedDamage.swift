/// Damage whose fingerprint differs little from another one.
package struct RelatedDamage: Sendable, Hashable {
  /// The damage.
  package var group: InboxGroup

  /// How much the fingerprints have in common, from 0 to 1.
  package var likeness: Double

  /// The parts in which they differ, by their names.
  package var differences: [String]

  /// The most fingerprints of one mark that are looked at; of a mark that very many share, some stand for all.
  package static let maximumOfBand = 500

  /// The most fingerprints that are compared in all: those whose marks in common weigh most.
  static let maximumCompared = 100
}

extension InboxRecords {
  /// The damage that is most like a fingerprint, its own left out; found by an index, however many stores there are.
  package func related(to fingerprint: DamageFingerprint, limit: Int) throws(InboxError) -> [RelatedDamage] {
    let found = try fingerprints(sharing: fingerprint.bands, limit: RelatedDamage.maximumCompared)
      .filter { $0.group != fingerprint.group }
      .map { (fingerprint: $0, likeness: fingerprint.likeness(to: $0)) }
      .sorted { ($1.likeness, $0.fingerprint.group) < ($0.likeness, $1.fingerprint.group) }
    let groups = Dictionary(
      try groups(found.prefix(max(0, limit)).map { $0.fingerprint.group }).map { ($0.id, $0) }
    ) { first, _ in first }
    return found.prefix(max(0, limit)).compactMap { item in
      groups[item.fingerprint.group].map { group in
        RelatedDamage(
          group: group, likeness: item.likeness, differences: item.fingerprint.differences(from: fingerprint))
      }
    }
  }
}
