import Foundation
import HTTPServer
import Inspector
import Lazaret
import Synchronization

/// An inspector that serves until Ctrl-C.
struct InspectorRun {
  private let options: InspectorOptions
  private let listening: ListeningOptions
  private let opensBrowser: Bool
  private let json: Bool
  private let start: RequestTarget

  /// - Parameter start: the page that the link leads to.
  init(
    _ options: InspectorOptions, _ listening: ListeningOptions, opensBrowser: Bool, json: Bool,
    start: RequestTarget = .to("stores")
  ) {
    self.options = options
    self.listening = listening
    self.opensBrowser = opensBrowser
    self.json = json
    self.start = start
  }

  private struct Announcement: Encodable {
    var url: String
    var port: UInt16
    var home: PathText
  }

  /// Serves; returns after Ctrl-C.
  ///
  /// - Throws: where nothing can listen at that address, or the files of the pages are missing.
  func run() throws {
    let isSecure = listening.tlsCert != nil
    // Servers at different ports of one host share their cookies, so each has a name of its own.
    let sessions = Sessions(cookieName: "lazaret-\(Token.random().text.prefix(8))", isSecure: isSecure)
    let inspector = try Inspector(options, sessions: sessions)
    Interruption.listen()
    var server = try listening.options()
    if server.port != 0 { server.hosts = listening.hosts(at: server.port) }
    let running: Server
    do throws(ServerError) {
      running = try Server(server) { inspector.respond(to: $0) }
    } catch {
      throw ServingError(error)
    }
    announce(inspector.sessions, port: running.port, isSecure: isSecure)
    while !Interruption.isRequested { Thread.sleep(forTimeInterval: 0.1) }
    if !json { Terminal.standardError.write("Ending …\n") }
    inspector.work.stop()
    running.stop()
  }

  private func announce(_ sessions: Sessions, port: UInt16, isSecure: Bool) {
    let isAny = listening.listen == "0.0.0.0" || listening.listen == "::"
    let address = isAny ? "127.0.0.1" : listening.listen
    let host = listening.host.first ?? (address.contains(":") ? "[\(address)]" : address)
    let link = "\(isSecure ? "https" : "http")://\(host):\(port)/open/\(sessions.makeLink(to: start).text)"
    if json {
      Terminal.standardOutput.write(
        JSONText.line(Announcement(url: link, port: port, home: PathText(options.home))))
    } else {
      if !listening.isLoopback, !isSecure {
        Terminal.standardError.write(
          "lazaret: this is not encrypted: whoever is on the way can read every record, and the link.\n")
      }
      Terminal.standardOutput.write(
        """
        The inspector of \(printable(options.home.string)) is at this link, which is good for one browser, once:

          \(link)

        Ctrl-C ends it.

        """)
    }
    if opensBrowser, !json { BrowserWindow.open(link) }
  }
}

/// The error of a server that could not be started, as the verbs tell errors.
struct ServingError: ReportableError {
  private let error: ServerError

  init(_ error: ServerError) { self.error = error }

  var code: String { error.code }
  var operation: String { error.operation }
  var path: FilePath? { nil }
  var detail: String { error.detail }
  var hint: String { error.hint }
}
