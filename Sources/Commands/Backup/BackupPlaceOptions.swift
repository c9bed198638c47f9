import ArgumentParser
import Backup
import Lazaret

/// Whose backups a verb is about.
struct BackupPlaceOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The store, or the name of its folder in Backups/; not needed where there is only one.", valueName: "store"))
  var store: PathArgument?

  @OptionGroup var home: HomeOptions

  /// The places of all stores, or of the one that was named.
  func places() throws(BackupError) -> [FolderPlace] {
    guard let store else { return try FolderPlace.all(home: home.path, in: FileSystem()) }
    return [FolderPlace(home: home.path, store: store.path, in: FileSystem())]
  }

  /// The place of the one store.
  ///
  /// - Throws: `no-such-backup` where there is none, `backup-request` where there are several and none was named.
  func place() throws(BackupError) -> FolderPlace {
    let places = try places()
    guard let first = places.first else {
      throw BackupError(
        .notFound, operation: "find the backups", path: home.path, detail: "there are no backups in this home",
        hint: "Another home is given with --home.")
    }
    guard places.count == 1 else {
      let names = places.compactMap { $0.path.lastComponent.map { printable($0.string) } }
      throw BackupError(
        .request, operation: "find the backups", path: home.path,
        detail: "\(places.count) stores have backups here: \(names.joined(separator: ", "))",
        hint: "Name one of them with --store.")
    }
    return first
  }
}

/// The name of a backup on the command line.
struct BackupArgument: ExpressibleByArgument {
  var id: BackupIdentifier

  init?(argument: String) {
    guard let id = BackupIdentifier(argument) else { return nil }
    self.id = id
  }
}
