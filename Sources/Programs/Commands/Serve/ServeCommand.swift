import ArgumentParser
import HTTPServer
import Inspector
import StoreCoordination
import SwiftModelSources

/// `lazaret serve`: the inspector, in a browser.
struct ServeCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "serve",
    abstract: "Shows quarantined stores, their damage and their records in a browser.",
    usage: "lazaret serve [--home <dir>] [--model <model> …] [<options>]",
    discussion: """
      Prints a link that is good for one browser, once, and opens the browser if there is one. Looking changes no byte of \
      any store. Ctrl-C ends it: what is running is ended in good order.

      It listens at 127.0.0.1. At any other address it speaks TLS, with --tls-cert and --tls-key; without, it has to be \
      told --insecure, and then everybody on the way can read along.

      The files of its pages are looked for in LAZARET_PUBLIC, in ../share/lazaret/Public beside the executable, in Public \
      above the executable, and in the folder that it was built from.

      With --inbox it also receives bundles from senders with a token, by tus 1.0 at /inbox/uploads: they are checked, unpacked \
      and salvaged by processes of their own, with limits on memory and time.

      EXAMPLES
        lazaret serve --home /var/lib/app --model App.xcdatamodeld
        lazaret serve --home /srv/support --inbox --identity support.key

      \(ExitStatus.help)
      """)

  @OptionGroup var home: HomeOptions

  @Option(
    help: ArgumentHelp(
      "The app's model: .xcdatamodeld, .xcdatamodel, .momd, .mom, Swift sources, a store that carries it, or a .sql schema; may be given several times.",
      valueName: "model"))
  var model: [PathArgument] = []

  @OptionGroup var versionOrder: VersionOrderOptions
  @OptionGroup var listening: ListeningOptions
  @OptionGroup var receiving: ReceivingOptions
  @OptionGroup var sendTo: SendToOptions

  @Flag(help: "Show and export only; offer no action.")
  var readOnly = false

  @Flag(help: "Do not open the browser.")
  var noBrowser = false

  @OptionGroup var output: OutputOptions
  @OptionGroup var log: LogOptions

  func run() throws {
    try report(json: output.json) {
      var options = InspectorOptions(
        home: try FileSystem().realPath(home.current().existing(to: "serve the inspector").path),
        publicFolder: try PublicFolder.find())
      options.models = InspectorModel.named(
        try model.map { path in
          (path.path.stem ?? "Model", try versionOrder.loadAppModel(path.path, json: output.json))
        })
      options.allowsActions = !readOnly
      options.logger = log.logger(json: output.json)
      options.receiver = try sendTo.receiver
      guard receiving.inbox else {
        try InspectorRun(options, listening.place, opensBrowser: !noBrowser, json: output.json).run()
        return
      }
      for path in model {
        let isOther = try ModelCarrier(path.path) != nil || ModelHistory(path.path) != nil
        guard try isOther || SwiftSources.isSource(path.path) else { continue }
        throw ModelError(
          .notAModel, path: path.path, detail: "the workers of an inbox read models, and no Swift sources or stores",
          hint: "Give the inbox a compiled model, such as lazaret model export writes.")
      }
      let running = try ReceivingRun(
        receiving, home: options.home, models: model.map(\.path), order: try versionOrder.order(of: model.map(\.path)))
      options.inbox = running.inbox
      let result = Result {
        try InspectorRun(
          options, listening.place, opensBrowser: !noBrowser, json: output.json, uploads: running.uploads,
          notIsolated: ReceivingRun.notIsolated()
        ) { _ in .to("inbox") }.run()
      }
      running.stop()
      try result.get()
    }
  }
}
