import ArgumentParser
import Lazaret
import Platform
import SystemPackage

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// The home, with backups and the catalogue of quarantined stores.
struct HomeOptions: ParsableArguments {
  static let variable = "LAZARET_HOME"

  @Option(
    help: ArgumentHelp(
      "The folder with Backups/ and the catalogue of quarantined stores. If not given, LAZARET_HOME, else the store's folder; the current one where no store is named.",
      valueName: "dir"))
  var home: PathArgument?

  static var environment: FilePath? { path(inEnvironment: variable) }

  /// Returns an environment variable's path, byte for byte.
  static func path(inEnvironment variable: String) -> FilePath? {
    guard let text = unsafe getenv(variable), unsafe text.pointee != 0 else { return nil }
    return unsafe FilePath(platformString: text)
  }

  func current() -> ChosenHome { given ?? ChosenHome(".", because: .currentFolder) }

  func of(store: FilePath) -> ChosenHome {
    if let given { return given }
    let folder = Self.folder(of: store)
    return ChosenHome(folder, because: .store)
  }

  func of(place: FilePath) throws(FileError) -> ChosenHome {
    let system = FileSystem()
    guard try system.status(of: place)?.kind == .directory else { return of(store: place) }
    if let given { return given }
    let folder = Self.home(in: try system.realPath(place))
    return ChosenHome(folder, because: .store)
  }

  /// - Throws: `home-missing` for a lookup by name.
  func of(quarantined name: FilePath) throws -> ChosenHome {
    if name.components.count > 1 || name.isAbsolute { return of(store: name) }
    return try current().existing(to: "find the quarantined store")
  }

  private var given: ChosenHome? {
    if let home { return ChosenHome(home.path, because: .option) }
    return Self.environment.map { ChosenHome($0, because: .environment) }
  }

  private static func folder(of store: FilePath) -> FilePath {
    let system = FileSystem()
    // The verb reports a missing store; use the path's folder.
    return home(in: (try? StoreFileSet.locate(store, in: system).folder) ?? store.folder)
  }

  private static func home(in folder: FilePath) -> FilePath {
    QuarantineFolder.isOne(folder) ? folder.folder : folder
  }
}
