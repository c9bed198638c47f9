/// What kind of values a generated store holds.
public enum StoreProfile: String, Sendable, Hashable, Codable, CaseIterable {
  case empty

  /// Values as apps have them, now and then none where the model allows that.
  case typical

  /// The values at the edges of every type: extreme numbers and dates, empty and very long text, writing from right to
  /// left, combining marks, large and empty data, data in files beside the store.
  case edge

  /// Nothing where the model allows nothing: what a change to mandatory stumbles over.
  case sparse

  /// The same values in every record where the model does not ask for different ones, and all records leading to the
  /// same one: what a new uniqueness constraint stumbles over.
  case uniform

  /// What kind of records such a store has, to end a sentence with.
  public var words: String {
    switch self {
    case .empty: "no records"
    case .typical: "usual values"
    case .edge: "extreme values"
    case .sparse: "nothing wherever the model allows that"
    case .uniform: "the same values in every record"
    }
  }
}
