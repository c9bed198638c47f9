extension Examination {
  /// How well the model that a store was compared with fits it: the more, the better; 0 where it does not, or nothing tells.
  package var fit: Int {
    switch verdict {
    case .compatible where health.notes.contains { $0.code == "lacks-tables" }: 3
    case .compatible, .repairable: 5
    case .outdated: 4
    // A version of the model was found, but the store is newer, or damaged.
    case .unavailable, .damaged, .incompatible, .missing:
      modelVersion != nil ? 2 : ["newer-model", "unknown-version"].contains(reason.code) ? 1 : 0
    }
  }
}
