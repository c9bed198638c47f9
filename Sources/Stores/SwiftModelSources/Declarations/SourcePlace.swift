/// A place in a source file.
public struct SourcePlace: Sendable, Hashable {
  /// The file, as it was named or found.
  public var file: String

  /// The line, from 1.
  public var line: Int

  /// The byte within the line, from 1.
  public var column: Int
}

extension SourcePlace: Comparable {
  /// By file, then by line and column.
  public static func < (first: SourcePlace, second: SourcePlace) -> Bool {
    (first.file, first.line, first.column) < (second.file, second.line, second.column)
  }
}
