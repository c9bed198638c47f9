import ArgumentParser
import Backup
import Lazaret
import ObjectStorage
import Platform
import SystemPackage

struct BackupListCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "list", abstract: "Lists backups, newest first, with what is known of each.",
    usage: "lazaret backup list [<store>] [--home <dir>] [--identity <file> ...] [<options>]",
    discussion: """
      A backup that lacks a file, or whose parent is missing, is listed as broken. Exits with 2 where one is. What a \
      migration has kept of a store is listed as an original. A file that restoring does not need is a warning. Where it \
      holds records that the migration removed, the list says how many, and how to release it: pruning keeps it until \
      then. Each store has backups of its own; the list gives its path in the home. One that moved within the home keeps \
      its backups, and the list says so. Of a store that is named, the list says which \
      backups are of one that was at its place at another time, such as before a salvage. Of an encrypted backup only a label \
      is known without its key; --identity gives the rest.
      """, examples: "lazaret backup list Stores/App.sqlite")

  @Argument(help: "A store; without it the backups of all stores of the home are listed.")
  var store: PathArgument?

  @OptionGroup var home: HomeOptions
  @OptionGroup var storage: StorageOptions
  @OptionGroup var identity: BackupIdentityOptions
  @OptionGroup var output: OutputOptions

  func perform() throws {
    if let path = store?.path, try FileSystem().status(of: path)?.kind == .directory {
      throw FileError(.isDirectory, operation: "find the store", path: path)
    }
    let source = try ChosenBackups(of: store?.path, home, storage, identity, to: "list the backups")
    let backups = source.backups
    let scope = try store.map { try backups.evidence(of: $0.path) }
    let catalogs =
      if source.storage != nil {
        try source.places().map { try BackupCatalog(of: $0) }
      } else {
        try store.map { try backups.catalogs(of: $0.path) } ?? backups.catalogs()
      }
    let all = Self.all(of: catalogs, sorted: store != nil && catalogs.count > 1)
    try output.print(
      source.home.listed(
        [
          "backups": all.map { $0.backup.payload(in: $0.place, of: scope) },
          // The named store's path at its last backup, if it has moved.
          "movedFrom": store == nil ? nil : catalogs.first?.place.owner?.movedFrom,
        ] as JSON.Object),
      all.isEmpty ? source.emptyWords(of: store?.path) : text(all, of: scope, in: source))
    if all.contains(where: { !$0.backup.isWhole }) { throw ExitStatus.doubtful }
  }

  private static func word(of backup: StoredBackup) -> String {
    switch backup.state {
    // Verified means restored and checked.
    case "proven": backup.proof?.lastRestored == nil ? "read back" : "verified"
    case "unproven": "not verified"
    case let state: state
    }
  }

  /// All backups with their places; newest first if two folders belong to one store.
  private static func all(
    of catalogs: [BackupCatalog], sorted: Bool
  ) -> [(place: any BackupPlace, backup: StoredBackup)] {
    let all = catalogs.flatMap { catalog in catalog.backups.map { (place: catalog.place, backup: $0) } }
    return sorted ? all.sorted { $0.backup.id > $1.backup.id } : all
  }

  private func text(
    _ all: [(place: any BackupPlace, backup: StoredBackup)], of scope: EvidenceScope?, in source: ChosenBackups
  ) -> String {
    let home = source.home
    let isVerbose = TextStyle.current.isVerbose
    var table = TextTable(
      ["id", "store", "age", "state", "kind", "size", "model"] + (isVerbose ? ["content", "ratio", "chain"] : []),
      numericColumns: [2, 5, 7, 8], shrinking: [1, 6])
    let now = Surroundings.machine.now()
    for (place, backup) in all {
      let manifest = backup.manifest
      table.append(
        [
          backup.id.description, place.words, Self.age(of: backup.id.date, at: now), Self.word(of: backup),
          manifest?.kind.rawValue ?? "?", readableSize(backup.bytes),
          manifest?.isLocked == true
            ? "encrypted" : printable(manifest?.model?.version ?? manifest?.model?.identifiers.first ?? ""),
        ] + (isVerbose ? details(of: backup) : []))
    }
    var text = table.text(indent: "")
    for (_, backup) in all where !backup.problems.isEmpty {
      text += "\(backup.id): " + backup.problems.map { printable($0.words) }.joined(separator: "; ") + "\n"
    }
    for (_, backup) in all where !backup.warnings.isEmpty {
      text += "\(backup.id): warning: " + backup.warnings.map { printable($0.words) }.joined(separator: "; ") + "\n"
    }
    let unverified = all.filter(\.backup.isUnverified).map(\.backup)
    if let first = unverified.first {
      let option = unverified.count == 1 ? " \(first.id)" : ""
      text += unverified.count == 1 ? "\(first.id) has" : "\(unverified.count) backups have"
      text += " a manifest that nothing speaks for yet. Verify with: lazaret backup verify\(option)\(home.option)\n"
    }
    for (place, backup) in all {
      // Reported until released, or for its retention period.
      guard backup.manifest?.isLocked != true, let last = backup.manifest?.falls?.first?.backup,
        Self.days(from: backup.id.date, to: now) < 30,
        all.contains(where: { $0.place.location == place.location && $0.backup.id == last && !$0.backup.isReleased })
      else { continue }
      text += "\(backup.id): records became few\n" + backup.fallWords(in: home)
    }
    for (_, backup) in all {
      guard let exclusion = scope.flatMap({ backup.exclusion(from: $0) }) else { continue }
      text += "\(backup.id): \(exclusion.words).\n"
    }
    for (_, backup) in all {
      guard let note = backup.onlyHere else { continue }
      text += "\(backup.id): \(RetentionReason.words(of: note)). Pruning keeps it until it is released with: "
      text += "lazaret backup release \(backup.id)\(home.option)\n"
    }
    if store != nil, let words = all.first?.place.movedWords { text += words }
    return text + (source.storage.map { "\nPlace: \(printable($0.location))\n" } ?? "\nHome: \(home.words)\n")
  }

  private func details(of backup: StoredBackup) -> [String] {
    let manifest = backup.manifest
    return [
      manifest.map { $0.isLocked ? "encrypted" : readableSize($0.contentBytes) } ?? "?",
      backup.ratio.map { "\($0)" } ?? "", manifest?.parent.map { "\(manifest?.depth ?? 0) on \($0)" } ?? "",
    ]
  }

  private static func days(from date: Timestamp, to now: Timestamp) -> Int64 {
    (now.secondsSince1970 &- date.secondsSince1970) / 86400
  }

  private static func age(of date: Timestamp, at now: Timestamp) -> String {
    let seconds = now.secondsSince1970 - date.secondsSince1970
    guard seconds >= 0 else { return "future" }
    for (unit, length) in [("d", Int64(86400)), ("h", 3600), ("min", 60)] where seconds >= length {
      return "\(seconds / length) \(unit)"
    }
    return "\(seconds) s"
  }
}

extension StoredBackup {
  /// Returns the JSON of a backup.
  ///
  /// - Parameter scope: the evidence scope of the queried store.
  func payload(in place: any BackupPlace, of scope: EvidenceScope? = nil) -> JSON.Object {
    JSON.Object(
      self,
      [
        "store": place.name,
        // The store's path relative to the home, if known.
        "path": place.owner?.path, "folder": place.shownLocation,
        "exclusion": scope.flatMap { exclusion(from: $0)?.rawValue },
      ])
  }
}

extension BackupManifest.Kind {
  func words(of manifest: BackupManifest) -> String {
    switch self {
    case .full: "full"
    case .delta: "changes since \(manifest.parent?.description ?? "?")"
    case .evidence: "evidence"
    case .original: "the original that a migration kept"
    }
  }
}
