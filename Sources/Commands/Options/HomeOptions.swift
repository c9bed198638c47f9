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

/// Where the backups and the catalogue of quarantined stores are.
struct HomeOptions: ParsableArguments {
  /// The variable of the environment that names the home.
  static let variable = "LAZARET_HOME"

  @Option(
    help: ArgumentHelp(
      "The folder with Backups/ and the catalogue of quarantined stores. If not given, LAZARET_HOME, else the store's folder; the current one where no store is named.",
      valueName: "dir"))
  var home: PathArgument?

  /// The home that the environment names; nil for none.
  static var environment: FilePath? { path(inEnvironment: variable) }

  /// The path, byte for byte, that a variable of the environment holds; nil for none.
  static func path(inEnvironment variable: String) -> FilePath? {
    guard let text = unsafe getenv(variable), unsafe text.pointee != 0 else { return nil }
    return unsafe FilePath(platformString: text)
  }

  /// The home of a verb that no store is named to.
  func current() -> ChosenHome { given ?? ChosenHome(".", because: .currentFolder) }

  /// The home of a verb that works on a store, which need not be there.
  func of(store: FilePath) -> ChosenHome {
    if let given { return given }
    let folder = Self.folder(of: store)
    return ChosenHome(folder, because: .store, other: OtherHome(of: store, besides: folder))
  }

  /// The home of a verb that looks at a store, or at a folder with stores.
  func of(place: FilePath) throws(FileError) -> ChosenHome {
    let system = FileSystem()
    guard try system.status(of: place)?.kind == .directory else { return of(store: place) }
    if let given { return given }
    let folder = Self.home(in: try system.realPath(place))
    return ChosenHome(folder, because: .store, other: OtherHome(of: nil, besides: folder))
  }

  /// The home of a quarantined store, by its name or by the path of one of its files.
  ///
  /// - Throws: `home-missing` where a name is to be looked up in a home that is not there.
  func of(quarantined name: FilePath) throws -> ChosenHome {
    if name.components.count > 1 || name.isAbsolute { return of(store: name) }
    return try current().existing(to: "find the quarantined store")
  }

  private var given: ChosenHome? {
    if let home { return ChosenHome(home.path, because: .option) }
    return Self.environment.map { ChosenHome($0, because: .environment) }
  }

  /// The folder of a store, and of a quarantined one the folder that its quarantine is in.
  private static func folder(of store: FilePath) -> FilePath {
    let system = FileSystem()
    // Where the store cannot be found, the verb itself says so; the folder is then the one that its path names.
    return home(in: (try? StoreFileSet.locate(store, in: system).folder) ?? store.folder)
  }

  private static func home(in folder: FilePath) -> FilePath {
    QuarantineFolder.isOne(folder) ? folder.folder : folder
  }
}
