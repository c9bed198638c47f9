import Lazaret
import Platform
import SystemPackage

extension QuarantinedStore {
  /// Returns the command that puts the store back; nil if the receipt does not name its path.
  ///
  /// - Parameter isReplacing: first quarantines another store at the path.
  func undo(home: FilePath?, replacing isReplacing: Bool) -> String? {
    receipt?.originalPath.path.map { _ in Self.release(files.main, home: home, replacing: isReplacing) }
  }

  /// Absolute paths make it work in any folder.
  fileprivate static func release(_ path: FilePath, home: FilePath?, replacing isReplacing: Bool) -> String {
    let option = home.map { " --home \(shellQuoted($0))" } ?? ""
    return "lazaret quarantine release \(shellQuoted(path))\(option)\(isReplacing ? " --replace" : "")"
  }
}

extension OpeningEvent {
  /// The command that puts the quarantined store back; nil for an event without one.
  func undo(in home: ChosenHome) -> String? {
    guard reason != nil, let stored = path.path else { return nil }
    return QuarantinedStore.release(stored, home: home.wholePath, replacing: true)
  }
}

extension Quarantines {
  /// Returns the command that puts a store back in the present state; nil without its path or files.
  func undo(of stored: QuarantinedStore) throws -> String? {
    let fileSystem = FileSystem()
    guard let place = stored.receipt?.originalPath.path, try !stored.files.members(in: fileSystem).isEmpty else {
      return nil
    }
    let isTaken: Bool
    do throws(FileError) {
      isTaken = try !StoreFileSet(main: place).members(in: fileSystem).isEmpty
    } catch {
      // An unreadable place may be taken; replacing works on an empty one too.
      isTaken = true
    }
    return stored.undo(home: ChosenHome.whole(home), replacing: isTaken)
  }
}
