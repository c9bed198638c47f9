/// A file or folder of an archive, its name checked.
public struct TarEntry: Sendable, Hashable {
  /// The parts of its name, at least one.
  public var components: [String]

  /// The bytes of its content; none for a folder.
  public var size: Int64

  /// Whether it is a folder.
  public var isFolder: Bool

  /// Its name with slashes between the parts.
  public var name: String { components.joined(separator: "/") }
}
