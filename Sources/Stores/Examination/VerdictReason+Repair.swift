import PersistentStore
import StoreFiles

extension VerdictReason {
  /// The code for a sound store that lacks something of the model that its metadata names.
  package static let repairableCode = "repairable"

  /// What the store lacks of its own model, and that it can be made good; or what to do instead where a repair refuses it.
  static func repairable(_ drift: StoreDrift, isBeyondRepair: Bool) -> VerdictReason {
    VerdictReason(
      repairableCode,
      words: "The store's pages are sound, but it is not as its own model wants it: \(drift.summary(showing: 5)).",
      hint: isBeyondRepair
        ? "A repair refuses it: the entity of some records, or what is missing, cannot be told for certain. Have it salvaged: a clean store of its records is made, and this one is left as it is."
        : "Have it repaired: what is missing is added on a copy, and the original is kept.",
      sqlite: drift.concernsRecords ? 1 : nil)
  }
}

extension StoreDrift {
  /// The first differences in words, and how many more there are.
  func summary(showing most: Int) -> String {
    // Names in a store can be very long.
    let shown = differences.prefix(most).map { difference in
      difference.words.count > 200 ? difference.words.prefix(199) + "…" : difference.words
    }.joined(separator: "; ")
    return differences.count > most ? "\(shown); and \(grouped(differences.count - most)) more" : shown
  }
}
