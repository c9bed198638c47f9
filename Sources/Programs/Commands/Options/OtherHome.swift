import RecoveryKit
import StoreCoordination

/// What earlier versions of the command line, whose home was the current folder, have kept there of a store.
struct OtherHome: Encodable {
  let path: PathText

  /// What of the store is in it, as paths in the folder.
  let holds: [String]

  /// The option by which a verb works on it.
  let option: String

  private var hasQuarantines: Bool { holds.contains(Self.catalogue) }
  private static let catalogue = "Quarantines.json"

  /// What lies in the current folder of a store; nil where that is nothing, and where the home is that folder.
  ///
  /// - Parameter store: the store; nil for all of the home's folder.
  init?(of store: FilePath?, besides home: FilePath) {
    guard !ChosenHome.isSame(".", home), let here = try? FileSystem().realPath(".") else { return nil }
    let holds = Self.holdings(here, of: store, home)
    guard !holds.isEmpty else { return nil }
    self.holds = holds
    path = PathText(here)
    option = "--home ."
  }

  /// What cannot be read is not told of: it is not what the verb was asked for, and nothing is done with it.
  private static func holdings(_ here: FilePath, of store: FilePath?, _ home: FilePath) -> [String] {
    var holds: [String] = []
    if let stores = try? Quarantines(home: here).stores(),
      stores.contains(where: { ChosenHome.isSame($0.files.folder.folder, home) })
    {
      holds.append(catalogue)
    }
    guard let store else { return holds }
    let backups = Backups(home: here)
    if let place = try? backups.place(of: store), let catalog = try? BackupCatalog(of: place),
      !catalog.backups.isEmpty
    {
      holds.append("Backups/\(place.path.lastComponent?.string ?? "")")
    }
    let kits = KitFolder(for: store, home: here)
    if let found = try? kits.kits(), !found.isEmpty {
      holds.append("Recovery/\(kits.path.lastComponent?.string ?? "")")
    }
    return holds
  }

  /// The note for a person, with the commands that show what is there.
  func note(besides home: FilePath) -> String {
    var commands = hasQuarantines ? ["lazaret quarantine list --home ."] : []
    if holds.contains(where: { $0.hasPrefix("Backups/") }) { commands.append("lazaret backup list --home .") }
    let see = commands.isEmpty ? "" : " See it with: \(commands.joined(separator: ", ")). "
    return """
      lazaret: the current folder has what earlier versions kept of it: \(printable(holds.joined(separator: ", "))).
        The home is now the store's folder, \(printable(home.string)), and nothing was moved.\(see.isEmpty ? " " : see)\
      To work on it, add: --home .

      """
  }
}
