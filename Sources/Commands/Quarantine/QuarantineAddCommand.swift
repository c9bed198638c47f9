import ArgumentParser
import Lazaret
import PersistentStore
import Platform
import SQLiteFormat
import SystemPackage

struct QuarantineAddCommand: Verb {
  static let configuration = CommandConfiguration(
    commandName: "add", abstract: "Moves a store into quarantine, whole, with a receipt.",
    usage: "lazaret quarantine add <store> [--reason <text>] [--replace-foreign] [<options>]",
    discussion: """
      The store goes into Incompatible/ beside it, under the time in UTC. A store that another process has open stays \
      where it is, and so does a file that is plainly no store, unless --replace-foreign says otherwise. What is printed \
      ends with the command that puts it back.

      EXAMPLE
        lazaret quarantine add Broken.sqlite --reason "the app did not start"

      \(ExitStatus.help)
      """)

  @Argument(help: "The store's main file.")
  var store: PathArgument

  @Option(help: "The app's model, to tell the store's version by; what LAZARET_MODEL names if not given.")
  var model: PathArgument?

  @OptionGroup var versionOrder: VersionOrderOptions

  @Option(help: ArgumentHelp("Why, in words, for the receipt.", valueName: "text"))
  var reason: String?

  @Option(
    name: .customLong("app-version"), help: ArgumentHelp("The app's version, for the receipt.", valueName: "version"))
  var appVersion: String?

  @OptionGroup var foreign: ForeignFileOptions
  @OptionGroup var home: HomeOptions
  @OptionGroup var table: TableOptions
  @OptionGroup var output: OutputOptions

  func perform() throws {
    let model = try ModelOption.chosen([model].compactMap(\.self)).first.map {
      try versionOrder.loadAppModel($0, json: output.json)
    }
    if !foreign.replaceForeign {
      try refuseNoStore(at: store.path, to: "quarantine the store", allowingEncrypted: true)
    }
    let line = ProgressLine()
    let home = home.of(store: store.path)
    let quarantines = Quarantines(home: home.path)
    let stored = try quarantines.add(
      store.path, model: model, reason: reason, appVersion: appVersion,
      observer: OpeningObserver { line.show($0) })
    line.clear()
    try output.print(
      stored.payload(in: quarantines),
      QuarantinedStoreText(stored, nil, undo: try quarantines.undo(of: stored)).text)
  }
}

struct ForeignFileOptions: ParsableArguments {
  @Flag(
    help:
      "Move the file even where it is nothing of the app's: another app's sound store, a text, a picture, an archive, a program. If not given, such a file is refused."
  )
  var replaceForeign = false
}

extension ParsableCommand {
  /// Throws `not-a-store` or `encrypted-or-random` if the file is plainly no store.
  ///
  /// The verb itself handles an unreadable file.
  ///
  /// - Parameter encrypted: whether to accept an encrypted file.
  func refuseNoStore(at path: FilePath, to operation: String, allowingEncrypted encrypted: Bool = false) throws {
    // The verb reports an unreadable file.
    guard let head = try? FileSystem().open(path).bytes(at: 0, length: FileKind.sampleLength) else { return }
    let isDatabase = FileKind(firstBytes: head) == .database
    if isDatabase, !FileKind.looksRandom(Array(head.dropFirst(DatabaseHeader.length))) { return }
    let examination = try Examiner().examine(path, options: .init(countsRecords: false))
    if encrypted, examination.isEncryptedOrRandom { return }
    if let error = LazaretError.noStore(examination, at: path, operation: operation) { throw error }
  }
}
