/// An entity's place in a store: its number, its ancestors' and descendants' numbers and its table.
public struct EntityLayout: Sendable, Hashable {
  /// The name of the entity.
  public let name: String

  /// The number that stands for it in `Z_ENT`, from 1.
  public let number: Int

  /// The name of the parent entity; nil for a root.
  public let parentName: String?

  /// The number of the parent (`Z_SUPER`); 0 for a root.
  public let parentNumber: Int

  /// The name of the root of its hierarchy, whose table it shares.
  public let rootName: String

  /// The number of its last descendant; its own number where it has none.
  public internal(set) var lastDescendantNumber: Int

  /// The table its records are in.
  public internal(set) var tableName: String

  /// Whether other entities inherit from it.
  public var hasSubentities: Bool { lastDescendantNumber > number }

  /// Whether it stands at the top of its hierarchy.
  public var isRoot: Bool { parentNumber == 0 }

  /// The numbers of the entity and of all that inherit from it.
  ///
  /// Numbers are given depth-first (format section 3.3), so that a hierarchy is one range.
  public var numbers: ClosedRange<Int> { number...max(number, lastDescendantNumber) }
}
