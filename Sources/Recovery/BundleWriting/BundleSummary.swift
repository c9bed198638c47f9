public import StoreFiles
public import SupportBundle

/// A bundle that was written: what is sent is this file and no other.
public struct BundleSummary: Sendable, Hashable, Codable {
  /// Where it is.
  public var path: PathText

  /// Its size in bytes.
  public var bytes: Int64

  /// The SHA-256 of the whole file in hexadecimal digits.
  public var sha256: String

  /// How much of the store is in it.
  public var level: BundleLevel

  /// To whom it is encrypted, as they publish their keys; empty where it is not.
  public var recipients: [String]

  /// The files within, their sizes before packing.
  public var items: [Item]

  /// A file within.
  public struct Item: Sendable, Hashable, Codable {
    /// Its path in the bag.
    public var name: String

    /// Its size in bytes.
    public var bytes: Int64

    /// Its SHA-256 in hexadecimal digits.
    public var sha256: String
  }
}
