import ArgumentParser
import Salvage
import StoreCoordination

/// The backup that a salvage takes lost rows from.
struct DonorOptions: ParsableArguments {
  /// The word for the newest backup; a file of that name is `./latest`.
  private static let latest: FilePath = "latest"

  @Option(
    help: ArgumentHelp(
      "A backup that lost rows are taken from: its id, latest, a healthy store, or a .gz; with its key, one that is encrypted.",
      valueName: "id|file"))
  var withBackup: PathArgument?

  @Flag(help: "Take them even if nothing says that the backup is of this very store, or if it was made later.")
  var trustBackup = false

  @OptionGroup var identity: BackupIdentityOptions

  /// Which one; nil for none.
  ///
  /// - Throws: what the file system says; a file of the name of a backup comes before the backup.
  func source() throws -> BackupSource? {
    guard let path = withBackup?.path else { return nil }
    if path == Self.latest { return .newest }
    guard let id = BackupIdentifier(path.string), try FileSystem().status(of: path) == nil else { return .file(path) }
    return .backup(id)
  }

  /// - Throws: where the options contradict each other.
  func check() throws {
    guard withBackup != nil || !trustBackup else { throw ValidationError("--trust-backup belongs to --with-backup.") }
    guard withBackup != nil || identity.identity.isEmpty else {
      throw ValidationError("--identity belongs to --with-backup.")
    }
  }

  /// The backup as a store that can be read; nil for none.
  ///
  /// - Throws: `home-missing` where a backup is to be looked up in a home that is not there.
  func unpacked(for store: FilePath, home: ChosenHome) throws -> UnpackedBackup? {
    guard let source = try source() else { return nil }
    let identities = try identity.identities()
    return try finding(source, in: home) {
      try UnpackedBackup(
        source, of: store, home: home.path, trust: trustBackup ? .anyStore : .sameStore, identities: identities
      ) {
        Interruption.isRequested
      }
    }
  }

  /// Runs what looks up the backup in a home.
  func finding<Result>(_ source: BackupSource?, in home: ChosenHome, _ body: () throws -> Result) throws -> Result {
    switch source {
    case nil, .file: return try body()
    case .newest: return try home.existing(to: "find the backup").finding(backup: nil, body)
    case .backup(let id): return try home.existing(to: "find the backup").finding(backup: id, body)
    }
  }
}
