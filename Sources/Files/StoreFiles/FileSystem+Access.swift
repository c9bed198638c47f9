package import SystemPackage

/// Who may do what with a file, as far as it can be given to another: permissions, owner, group, access control list and
/// extended attributes.
package struct FileAccess: Sendable, Hashable {
  /// The status, of which the permissions, the owner and the group count.
  package var status: FileStatus

  /// The extended attributes by name, the access control list among them; of some systems none.
  package var attributes: [String: [UInt8]]
}

extension FileAccess {
  /// The same for a store that an app is to open: its owner may read and write it.
  package var usable: FileAccess {
    var access = self
    access.status.permissions = status.permissions.union(.ownerReadWrite)
    return access
  }
}

extension FileSystem {
  /// Who may do what with a file, to be given to another later; nil where nothing has that name.
  package func access(to path: FilePath) throws(FileError) -> FileAccess? {
    guard let status = try status(of: path) else { return nil }
    let attributes = try perform(.status, path, "read the attributes of the file") { () throws(Errno) in
      try SystemCalls.attributes(of: path)
    }
    return FileAccess(status: status, attributes: attributes)
  }

  /// Gives a file everything that tells who may do what with another, as far as this user may.
  package func adoptAccess(of model: FileAccess, to path: FilePath) throws(FileError) {
    try adoptAccess(of: model.status, to: path)
    // Behind the permissions, which would be taken for the mask of a list that is there already.
    try perform(.write, path, "set the attributes of the file") { () throws(Errno) in
      try SystemCalls.setAttributes(model.attributes, of: path)
    }
  }

  /// The same with the access that a file has now; nothing is done where that is missing.
  package func adoptAccess(of model: FilePath, to path: FilePath) throws(FileError) {
    guard let access = try access(to: model) else { return }
    try adoptAccess(of: access, to: path)
  }

  /// Gives a file the permissions of another, and its owner and group where this user may.
  package func adoptAccess(of model: FileStatus, to path: FilePath) throws(FileError) {
    try perform(.write, path, "set the owner of the file") { () throws(Errno) in
      do throws(Errno) {
        try SystemCalls.setOwner(model.owner, group: model.group, of: path)
      } catch .notPermitted {
        // Only the superuser may give files away; the permissions still follow.
      } catch .permissionDenied {
      } catch .invalidArgument {
        // Nor is there that user where this process is.
      }
    }
    try perform(.write, path, "set the permissions of the file") { () throws(Errno) in
      try SystemCalls.setPermissions(model.permissions, of: path)
    }
  }

  /// Gives a folder the permissions, the owner and the group of another, where they differ; not where that is missing.
  package func adoptAccess(ofFolder model: FilePath, to path: FilePath) throws(FileError) {
    guard let wanted = try status(of: model), let now = try status(of: path, followingLinks: false),
      now.kind == .directory
    else { return }
    if (wanted.permissions, wanted.owner, wanted.group) == (now.permissions, now.owner, now.group) { return }
    try adoptAccess(of: wanted, to: path)
  }
}
