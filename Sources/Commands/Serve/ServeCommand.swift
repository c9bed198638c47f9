import ArgumentParser
import HTTPServer
import Inspector
import Lazaret
import Logging
import Platform
import SupportBundle
import SystemPackage

struct ServeCommand: Verb {
  static let configuration = CommandConfiguration(
    commandName: "serve",
    abstract: "Shows quarantined stores, their damage and their records in a browser.",
    usage: "lazaret serve [--home <dir>] [--model <model> …] [<options>]",
    discussion: """
      Prints a single-use link, and opens the browser if there is one. Looking changes no byte of \
      any store. Ctrl-C ends it: what is running is ended in good order.

      It listens at 127.0.0.1. At any other address it speaks TLS, with --tls-cert and --tls-key; without them it \
      needs --insecure, and then others on the network can read what is sent.

      The files of its pages are looked for in LAZARET_PUBLIC, in ../share/lazaret/Public beside the executable, and in \
      Public in a folder above it.

      With --inbox it also receives bundles from senders with a token, by tus 1.0, and prints the address that they \
      are sent to: they are checked, unpacked and salvaged by processes of their own, with limits on memory and time.

      A proxy before it is named with --proxy and the name that browsers ask for with --host: it speaks TLS, and this \
      process plain HTTP, at 127.0.0.1. /healthz says whether the process can work, to every client; /metrics what it counts, \
      in Prometheus' text format, to this machine and to each --metrics-reader.

      EXAMPLES
        lazaret serve --home Stores --model App.xcdatamodeld
        lazaret serve --home Support --inbox --identity support.key
        lazaret serve --inbox --proxy 127.0.0.1 --host support.example.com
        lazaret serve --inbox --database postgresql://db/lazaret
        lazaret serve --inbox --database postgresql://db/inbox --bundles s3://box/p

      \(ExitStatus.help)
      """)

  @OptionGroup var home: HomeOptions

  @Option(
    help: ArgumentHelp(
      "The app's model: .xcdatamodeld, .xcdatamodel, .momd, .mom, Swift sources, a store that carries it, or a .sql schema; may be given several times. If not given, what LAZARET_MODEL names.",
      valueName: "model"))
  var model: [PathArgument] = []

  @OptionGroup var versionOrder: VersionOrderOptions
  @OptionGroup var listening: ListeningOptions
  @OptionGroup var receiving: ReceivingOptions
  @OptionGroup var database: DatabaseOptions
  @OptionGroup var bundles: BundleOptions
  @OptionGroup var sendTo: SendToOptions

  func validate() throws {
    guard receiving.inbox || database.database == nil else { throw ValidationError("--database is for --inbox.") }
    guard receiving.inbox || bundles.bundles == nil else { throw ValidationError("--bundles is for --inbox.") }
  }

  @Flag(help: "Show and export only; offer no action.")
  var readOnly = false

  @Flag(help: "Do not open the browser.")
  var noBrowser = false

  @OptionGroup var output: OutputOptions
  @OptionGroup var log: LogOptions

  func perform() throws {
    var options = InspectorOptions(
      home: try FileSystem().realPath(home.current().existing(to: "serve the inspector").path),
      publicFolder: try PublicFolder.find())
    let models = ModelOption.chosen(model)
    options.models = InspectorModel.named(
      try models.map { ($0.stem ?? "Model", try versionOrder.loadAppModel($0, json: output.json)) })
    options.allowsActions = !readOnly
    options.logger = log.logger(json: output.json)
    options.receiver = try sendTo.receiver
    options.metricsReaders = listening.metricsReaders
    options.meter = RequestMeter { [logger = options.logger] answer in logger.note(answer) }
    var run = InspectorRun(
      options: options, listening: listening.place, opensBrowser: !noBrowser, json: output.json,
      linkFile: listening.linkFile?.path)
    guard receiving.inbox else { return try run.run() }
    try InboxWorkers.check(models)
    let (address, place) = (try database.address(), try bundles.address())
    try InboxWorkers.check(database: address, bundles: place, workers: receiving.workers)
    let running = try ReceivingRun(
      receiving, home: options.home, database: address, bundles: place, models: models,
      order: try versionOrder.order(of: models))
    run.options.inbox = running.inbox
    run.uploads = running.uploads
    run.start = { _ in .to("inbox") }
    let result = Result {
      run.notIsolated = try ReceivingRun.notIsolated()
      try run.run()
    }
    running.stop()
    try result.get()
  }
}

struct SendToOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Where bundles may be sent from the pages, such as https://support.example.com/inbox/uploads.", valueName: "url"))
  var sendTo: String?

  @Option(help: ArgumentHelp("A file with the token that the receiver gave you.", valueName: "file"))
  var tokenFile: PathArgument?

  /// - Throws: `send-request` for an invalid address; `FileError` for a missing token file.
  var receiver: InspectorReceiver? {
    get throws {
      guard let sendTo else { return nil }
      let address = try CommandLineSlip.telling { try ReceiverAddress(sendTo) }
      let file = try tokenFile.map { try FileSystem().realPath($0.path) }
      return InspectorReceiver(address, tokenFile: file)
    }
  }

  func validate() throws {
    guard sendTo != nil || tokenFile == nil else { throw ValidationError("--token-file belongs to --send-to.") }
  }
}

struct ListeningOptions: ParsableArguments {
  @Option(help: ArgumentHelp("The port; 0 for any that is free.", valueName: "number"))
  var port: UInt16 = 8080

  @Option(help: ArgumentHelp("The numeric address to listen at.", valueName: "address"))
  var listen = "127.0.0.1"

  @Option(
    help: ArgumentHelp("A name that browsers reach it by, besides the loopback's; several times.", valueName: "name"))
  var host: [String] = []

  @Option(help: ArgumentHelp("The certificate for TLS, in PEM.", valueName: "file"))
  var tlsCert: PathArgument?

  @Option(help: ArgumentHelp("The private key of the certificate, in PEM.", valueName: "file"))
  var tlsKey: PathArgument?

  @Option(
    help: ArgumentHelp(
      "The numeric address of a proxy in front of it that speaks TLS to the browsers: its X-Forwarded-For and X-Forwarded-Host are believed; several times. Give the name that browsers ask for with --host.",
      valueName: "address"))
  var proxy: [String] = []

  @Option(
    help: ArgumentHelp(
      "A numeric address that may read /metrics, besides those of this machine; several times.", valueName: "address"))
  var metricsReader: [String] = []

  @Option(
    help: ArgumentHelp(
      "Write the single-use link into this file, which only its owner may read, instead of printing it.",
      valueName: "file"))
  var linkFile: PathArgument?

  @Flag(help: "Listen beyond this machine without TLS: others on the network can read what is sent.")
  var insecure = false

  var place: ListeningPlace {
    var place = ListeningPlace(address: listen, port: port, names: host)
    place.proxies = Set(proxy.compactMap(ClientAddress.init))
    if let tlsCert, let tlsKey { place.tls = (tlsCert.path, tlsKey.path) }
    return place
  }

  var metricsReaders: Set<ClientAddress> { Set(metricsReader.compactMap(ClientAddress.init)) }

  func validate() throws {
    for (name, texts) in [("proxy", proxy), ("metrics-reader", metricsReader)] {
      for text in texts where ClientAddress(text) == nil {
        throw ValidationError("\(text) is not a numeric address: give --\(name) one such as 127.0.0.1 or ::1.")
      }
    }
    guard proxy.isEmpty || !host.isEmpty else {
      throw ValidationError("Give --host with --proxy: the name that browsers ask the proxy for.")
    }
    guard (tlsCert == nil) == (tlsKey == nil) else { throw ValidationError("Give --tls-cert and --tls-key together.") }
    guard place.isLoopback || tlsCert != nil || insecure else {
      throw ValidationError(
        "\(listen) can be reached from other machines: give --tls-cert and --tls-key, or say --insecure.")
    }
    guard port != 0 || place.isLoopback else { throw ValidationError("Give a --port with --listen.") }
  }
}

extension Logger {
  /// Logs an answered request at `info`, with only the first path component, since the rest may concern a record.
  func note(_ answer: RequestMeter.Answer) {
    info(
      "request",
      metadata: [
        "method": "\(answer.method)", "area": "\(answer.area)", "status": "\(answer.status)",
        "milliseconds": "\((answer.duration / .milliseconds(1)).rounded())",
        "client": "\(answer.client?.description ?? "unknown")",
      ])
  }
}
