/// What the caller decides about a scrub: which columns stay, and which are emptied.
public struct ScrubRules: Sendable, Hashable {
  /// Attributes whose values stay, as `Entity.attribute`, or `table.column` where there is no model.
  public var keeping: Set<String>

  /// Attributes whose values are all overwritten with the same filling, named alike.
  public var dropping: Set<String>

  /// Rules; all values are replaced unless told otherwise.
  public init(keeping: Set<String> = [], dropping: Set<String> = []) {
    self.keeping = keeping
    self.dropping = dropping
  }
}
