import ArgumentParser
public import Backup
import Lazaret
import Platform

struct BackupCreateCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "create", abstract: "Backs a store up while it goes on being used.",
    usage: "lazaret backup create <store> [--home <dir>] [--compression <format>] [--full] [<options>]",
    discussion: """
      Takes one consistent state of the store, with what is in its write-ahead log and its large values. Writers are not \
      kept waiting, and nothing beside the store is touched. Where few pages changed since the last backup only those are \
      kept. While it is packed, every page is checked, and the entries of indexes against the rows of their tables. What was \
      written is read back and unpacked before the backup counts.

      A store that is damaged or encrypted is kept as its raw files, byte for byte, apart from the good backups; the exit \
      code is 2 then, and where files of large values that records refer to are missing. A file that is plainly no store is \
      kept only with --evidence.

      Where an entity has less than half of the records that it had in the last backup, or none, that is reported, \
      and that backup is kept for thirty days, or until it is released. See: lazaret backup release

      With --encrypt-to the backup is encrypted with age; only holders of the secret keys see more of it than a label, and \
      the name of its folder tells nothing. The next one can still keep only what changed. The policy can say to whom, too \
      (encryptTo). Leave BackupKeys/ of the home out where Backups/ is copied elsewhere: it names the stores.

      EXAMPLE
        lazaret backup create Stores/App.sqlite --tag nightly

      \(ExitStatus.help)
      """)

  @Argument(help: "The store's main file.")
  var store: PathArgument

  @OptionGroup var home: HomeOptions
  @OptionGroup var storage: StorageOptions

  @Option(help: ArgumentHelp("How to pack: gzip or zstd.", valueName: "format"))
  var compression = BackupCompression.gzip

  @Option(
    help: ArgumentHelp("How hard to pack: 1, 6 or 9, usually 6; for zstd 1 to 19, usually 3.", valueName: "n"))
  var level: Int?

  @Option(
    help: ArgumentHelp(
      "Encrypt to a public key, age1…, or to those in a file; may be given again.", valueName: "recipient"))
  var encryptTo: [String] = []

  @Flag(help: "Do not encrypt, even where the policy says so or the last backup is encrypted.")
  var noEncryption = false

  @Flag(help: "Keep the whole store, even where few pages changed.")
  var full = false

  @Flag(help: "Keep the raw files of the store, whatever state it is in.")
  var evidence = false

  @Option(help: ArgumentHelp("A word for retention; may be given several times.", valueName: "tag"))
  var tag: [String] = []

  @Flag(help: "Do not read back what was written.")
  var noVerify = false

  @OptionGroup var output: OutputOptions

  func validate() throws {
    guard encryptTo.isEmpty || !noEncryption else { throw ValidationError("--no-encryption leaves no --encrypt-to.") }
  }

  func run() throws {
    try report(json: output.json) {
      if !evidence { try refuseNoStore(at: store.path, to: "back the store up", allowingEncrypted: true) }
      let line = ProgressLine()
      var request = BackupRequest { phase, done, total in
        line.show(phase.words, done, of: total, .bytes)
        return true
      }
      request.compression = compression
      request.level = level
      if !encryptTo.isEmpty { request.encryption = BackupEncryption(to: try KeyFiles.recipients(encryptTo)) }
      request.allowsPlain = noEncryption
      request.isFull = full
      request.isEvidence = evidence
      request.tags = tag
      request.proves = !noVerify
      let home = home.of(store: store.path)
      let backups = Backups(home: home.path)
      let storage = try storage.chosen()
      let before: any BackupPlace = if let storage { storage } else { try backups.place(of: store.path) }
      let create = { try backups.create(store.path, request, in: storage) }
      let backup = try storage == nil ? home.writing(create) : create()
      let place: any BackupPlace = if let storage { storage } else { try backups.place(of: store.path) }
      line.clear()
      if output.json {
        try Terminal.standardOutput.write(
          json: ["backup": backup.payload(in: place), "movedFrom": before.owner?.movedFrom] as JSON.Object)
      } else {
        Terminal.standardOutput.write(text(backup, place, home) + (before.movedWords ?? ""))
      }
      // Only damage counts: evidence may be of a sound store.
      if let check = backup.manifest?.check, !check.isSound { throw ExitStatus.doubtful }
      if backup.manifest?.externalData?.missing.isEmpty == false { throw ExitStatus.doubtful }
    }
  }

  private func text(_ backup: StoredBackup, _ place: any BackupPlace, _ home: ChosenHome) -> String {
    guard let manifest = backup.manifest else { return "" }
    let sizes = "\(readableSize(manifest.contentBytes)) in \(readableSize(manifest.totalBytes))"
    var text = "Backup \(backup.id): \(manifest.kind.words(of: manifest)), \(sizes), in \(place.location)\n"
    if !manifest.check.isSound, let words = manifest.check.words {
      text += "  The store was kept as its raw files, apart from the good backups.\n  \(words)\n"
    }
    if let links = manifest.externalData?.links {
      let words = links.count == 1 ? "is a link to a file" : "are links to files"
      text +=
        "  \(counted(Int64(links.count), "large value")) \(words) elsewhere, of which the content is in the backup: \(links.prefix(5).map { printable($0.text) }.joined(separator: ", "))\n"
    }
    if let missing = manifest.externalData?.missing, !missing.isEmpty {
      text +=
        "  \(counted(Int64(missing.count), "large value")) that the store refers to \(missing.count == 1 ? "is" : "are") missing from it.\n"
    }
    let unchecked = (manifest.check.notChecked ?? []) + (manifest.check.uncompared ?? []).map { "index \($0)" }
    if !unchecked.isEmpty {
      let more = unchecked.count > 5 ? " and \(unchecked.count - 5) more" : ""
      text += "  Not checked: \(unchecked.prefix(5).map { printable($0) }.joined(separator: ", "))\(more).\n"
    }
    return text + FallText(backup, home).text
  }
}

/// The entities with a sudden loss of records, in words.
struct FallText {
  let text: String

  init(_ backup: StoredBackup, _ home: ChosenHome) {
    var lines = ""
    let falls = backup.manifest?.falls ?? []
    for fall in falls.prefix(20) {
      let now = fall.after == 0 ? "no record" : counted(fall.after, "record")
      lines += "  \(printable(fall.name)) has \(now), and had \(grouped(fall.before)) in \(fall.backup).\n"
    }
    if let last = falls.first?.backup {
      if falls.count > 20 { lines += "  \(falls.count - 20) more have less than half of their records too.\n" }
      lines += "  Backup \(last) is kept for 30 days. Where this was meant, release it with: "
      lines += "lazaret backup release \(last)\(home.option)\n"
    }
    text = lines
  }
}

extension BackupPhase {
  var words: String {
    switch self {
    case .comparing: "Comparing"
    case .packing: "Packing"
    case .externalData: "Large values"
    case .proving: "Reading back"
    case .unpacking: "Unpacking"
    case .checking: "Checking"
    }
  }
}

extension BackupCompression: ExpressibleByArgument {}
