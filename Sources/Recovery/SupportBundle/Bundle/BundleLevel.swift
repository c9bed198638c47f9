/// How much of a store leaves the machine with a bundle.
public enum BundleLevel: String, Sendable, Hashable, Codable, CaseIterable {
  /// Numbers, names of tables and columns, and states: no byte of the user's.
  case facts

  /// Besides, the damaged and orphan pages and those of the schema, as they are.
  case damagedPages = "damaged-pages"

  /// Besides the facts, the whole store with its damage, its values replaced but for those that the report lists.
  case scrubbed

  /// Everything, byte for byte.
  case full

  /// What it means, for the user who is to agree to it.
  public var words: String {
    switch self {
    case .facts: "only numbers, names of tables and columns, and what is damaged; none of your data"
    case .damagedPages: "the facts, and the damaged pages as they are; they can hold some of your data"
    case .scrubbed: "the facts, and the whole store with meaningless values of the same length in the place of its own"
    case .full: "everything, byte for byte, all your data included"
    }
  }
}
