/// How large a property list may become in memory, whatever its bytes promise.
public struct PropertyListLimits: Sendable, Hashable {
  /// The largest number of bytes read.
  public var maximumBytes: Int

  /// The deepest nesting of arrays and dictionaries.
  public var maximumDepth: Int

  /// The largest number of values when every shared value is counted each time it is referred to.
  public var maximumNodes: Int

  /// Limits that every honest property list of a store or a model stays far below.
  public static let standard = PropertyListLimits(
    maximumBytes: 64 << 20, maximumDepth: 96, maximumNodes: 2_000_000)

  /// Limits of one's own; a depth above 200 is cut to 200, which the stack of any thread bears.
  public init(maximumBytes: Int, maximumDepth: Int, maximumNodes: Int) {
    self.maximumBytes = maximumBytes
    self.maximumDepth = min(maximumDepth, 200)
    self.maximumNodes = maximumNodes
  }
}
