public import StoreFiles
public import SystemPackage

/// A healthy store that rows are taken from which the damaged one has lost: a backup that was restored into a file.
///
/// It is only read, and never opened as a database.
public struct SalvageDonor: Sendable, Hashable {
  /// What must be known of where a donor is from before rows are taken from it.
  public enum Trust: String, Sendable, Hashable {
    /// It bears the identifier of the damaged store.
    case sameStore = "same-store"

    /// It does not bear another store's; something else says that it is of this one, such as the place where it was kept.
    case noOtherStore = "no-other-store"

    /// Nothing: the caller vouches for it.
    case anyStore = "any-store"
  }

  /// The main file.
  public var path: FilePath

  /// When the backup was made; what its rows are marked with.
  public var date: Timestamp

  /// What must be known of where it is from.
  public var trust: Trust

  /// What it is called among the backups, for the report; nil for a file that is none of ours.
  public var id: String?

  /// A store, and of when it is.
  public init(path: FilePath, date: Timestamp, trust: Trust = .sameStore, id: String? = nil) {
    self.path = path
    self.id = id
    self.date = date
    self.trust = trust
  }

  /// A store of when its main file was changed last.
  ///
  /// - Throws: ``SalvageError`` where it cannot be looked at.
  public init(path: FilePath, in fileSystem: FileSystem = FileSystem()) throws(SalvageError) {
    do throws(FileError) {
      guard let status = try fileSystem.status(of: path) else {
        throw FileError(.notFound, operation: "read the backup", path: path)
      }
      self.init(path: path, date: status.modified)
    } catch {
      throw SalvageError(error)
    }
  }
}
