/// How much of a store that lacks what its own model has is made good.
public enum RepairScope: String, Sendable, Hashable, Codable, CaseIterable {
  /// Nothing: the store is taken as it is.
  case nothing

  /// What is missing is added: columns, tables, indexes, triggers, bookkeeping. No value that is there changes.
  case structure

  /// The same, and records and references that break the model's rules are put right; what is taken out is set aside.
  case data
}
