internal import SupportBundle
public import SystemPackage

/// One file of a bundle.
public struct BundleItem: Sendable {
  /// Where its bytes are.
  public enum Content: Sendable {
    case bytes([UInt8])

    /// In a file that does not change meanwhile.
    case file(FilePath, size: Int64)
  }

  /// Its path below `data/`, with slashes.
  public var name: String

  /// Its bytes.
  public var content: Content

  /// What it is, for the user who is to agree to it.
  public var words: String

  /// A file of a bundle.
  public init(_ name: String, _ content: Content, words: String) {
    self.name = name
    self.content = content
    self.words = words
  }

  /// Its size in bytes.
  public var size: Int64 {
    switch content {
    case .bytes(let bytes): Int64(bytes.count)
    case .file(_, let size): size
    }
  }
}
