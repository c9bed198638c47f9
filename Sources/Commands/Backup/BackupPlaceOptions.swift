import ArgumentParser
import Lazaret

/// Whose backups a verb is about.
struct BackupPlaceOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The store, or the name of its folder in Backups/; not needed where there is only one.", valueName: "store"))
  var of: PathArgument?

  @OptionGroup var home: HomeOptions

  /// The backups that are meant, where they lie.
  ///
  /// - Parameter json: whether what earlier versions kept elsewhere is told in the JSON.
  /// - Throws: `home-missing`.
  func chosen(to operation: String, json: Bool) throws -> ChosenBackups {
    let home = try (of.map { self.home.of(store: $0.path) } ?? self.home.current()).existing(to: operation)
    home.tell(json: json)
    return ChosenBackups(home: home, of: of?.path)
  }
}

/// The backups that a verb is about, and where they lie.
struct ChosenBackups {
  let home: ChosenHome

  /// The store, or the name of its folder; nil where none was named.
  let of: FilePath?

  /// The backups of the home.
  var backups: Backups { Backups(home: home.path) }

  /// The places of all stores, or of the one that was named.
  func places() throws(BackupError) -> [FolderPlace] {
    if let of { return [backups.place(of: of)] }
    return try backups.places()
  }

  /// The place of the one store, or the one that has a backup.
  ///
  /// - Throws: `no-such-backup` where there is none, `backup-request` where there are several and none was named.
  func place(with id: BackupIdentifier?) throws -> any BackupPlace {
    if of == nil, let id { return try home.finding(backup: id) { try backups.find(id).catalog.place } }
    return try place()
  }

  /// The place of the one store.
  func place() throws(BackupError) -> FolderPlace {
    let places = try places()
    guard let first = places.first else {
      throw BackupError(
        .notFound, operation: "find the backups", path: home.path,
        detail: "there are no backups in the home: \(home.words)",
        hint: ChosenHome.another)
    }
    guard places.count == 1 else {
      let names = places.compactMap { $0.path.lastComponent.map { printable($0.string) } }
      throw BackupError(
        .request, operation: "find the backups", path: home.path,
        detail: "\(places.count) stores have backups here: \(names.joined(separator: ", "))",
        hint: "Name one of them with --of.")
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
