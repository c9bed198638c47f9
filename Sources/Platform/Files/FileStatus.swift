public import SystemPackage

/// What the file system says of a file.
public struct FileStatus: Sendable, Hashable {
  /// What kind of thing a name stands for.
  public enum Kind: String, Sendable {
    case regular
    case directory
    case symbolicLink
    case other
  }

  /// What kind of thing it is.
  public var kind: Kind

  /// The length in bytes.
  public var size: Int64

  /// The bytes that the file system keeps for it; fewer than ``size`` where the file has holes.
  ///
  /// No part of equality: what was written may get its place on the disk later.
  public var allocatedSize: Int64

  /// What tells it from every other file.
  public var identity: FileIdentity

  /// The number of names the file has.
  public var linkCount: Int

  /// Who may do what with it.
  public var permissions: FilePermissions

  /// The number of the user it belongs to.
  public var owner: UInt32

  /// The number of the group it belongs to.
  public var group: UInt32

  /// When the content was last written.
  public var modified: Timestamp

  /// When the content or the file's status was last changed.
  public var statusChanged: Timestamp

  /// The bytes that a copy of it takes, holes left out.
  public var occupiedSize: Int64 { kind == .regular ? min(size, allocatedSize) : size }

  /// Whether it has holes worth leaving out.
  var isSparse: Bool { kind == .regular && allocatedSize < size - 65_536 }
}

extension FileStatus {
  /// What two statuses are compared by: everything but the bytes allocated.
  private struct Facts: Hashable {
    let kind: Kind
    let size: Int64
    let identity: FileIdentity
    let linkCount: Int
    let permissions: FilePermissions
    let owner: UInt32
    let group: UInt32
    let times: [Timestamp]
  }

  private var facts: Facts {
    Facts(
      kind: kind, size: size, identity: identity, linkCount: linkCount, permissions: permissions, owner: owner,
      group: group, times: [modified, statusChanged])
  }

  /// Whether two statuses are the same, apart from the bytes allocated.
  public static func == (one: FileStatus, other: FileStatus) -> Bool { one.facts == other.facts }

  /// Hashes what is compared.
  public func hash(into hasher: inout Hasher) { hasher.combine(facts) }
}

/// What tells one file from another, whatever its name: device and inode.
public struct FileIdentity: Sendable, Hashable, Codable {
  /// The number of the file system's device.
  public var device: UInt64

  /// The number of the file on that device.
  public var inode: UInt64
}
