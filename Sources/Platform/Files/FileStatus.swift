public import SystemPackage

/// A file's status.
public struct FileStatus: Sendable, Hashable {
  /// The kinds of directory entries.
  public enum Kind: String, Sendable {
    case regular
    case directory
    case symbolicLink
    case other
  }

  /// The kind of file.
  public var kind: Kind

  /// The length in bytes.
  public var size: Int64

  /// The allocated bytes; fewer than ``size`` for a sparse file.
  ///
  /// Not compared: allocation may follow the write.
  public var allocatedSize: Int64

  /// The file's identity.
  public var identity: FileIdentity

  /// The number of hard links.
  public var linkCount: Int

  /// The permissions.
  public var permissions: FilePermissions

  /// The owner's user ID.
  public var owner: UInt32

  /// The group's ID.
  public var group: UInt32

  /// The modification time.
  public var modified: Timestamp

  /// The status change time.
  public var statusChanged: Timestamp

  /// The bytes of a copy, without holes.
  public var occupiedSize: Int64 { kind == .regular ? min(size, allocatedSize) : size }

  var isSparse: Bool { kind == .regular && allocatedSize < size - 65_536 }
}

extension FileStatus {
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

  /// Whether two statuses are equal, apart from the allocated bytes.
  public static func == (one: FileStatus, other: FileStatus) -> Bool { one.facts == other.facts }

  /// Hashes the compared members.
  public func hash(into hasher: inout Hasher) { hasher.combine(facts) }
}

/// A file's identity across names: device and inode.
public struct FileIdentity: Sendable, Hashable, Codable {
  /// The device number.
  public var device: UInt64

  /// The inode number.
  public var inode: UInt64
}
