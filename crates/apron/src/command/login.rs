//! `login` and `logout`: credentials, kept where Docker keeps them.

use crate::args::registry::RegistryArguments;
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::registry;
use crate::settings::Settings;
use oci::{Repository, Rules};
use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};
use store::auth::{self, Credential, Helpers, Keychain};

/// Whom to log in, and where.
pub(crate) struct Login {
    pub(crate) host: String,
    pub(crate) username: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) password_stdin: bool,
    pub(crate) registry: RegistryArguments,
}

/// Where to log out.
pub(crate) struct Logout {
    pub(crate) host: String,
    pub(crate) auth_file: Option<PathBuf>,
}

/// Tries credentials and stores them.
pub(crate) async fn login(request: &Login, settings: &Settings) -> Outcome {
    let host = host(&request.host)?;
    let file = auth_file(request.registry.auth_file.as_deref(), settings)?;
    let (username, password) = credentials(request, &host)?;
    let credential = Credential::Basic { user: username.clone(), password: password.clone() };
    let client = registry::client_with(Keychain::fixed(credential), &request.registry, settings)?;
    // Which repository does not matter: the question is whether the registry lets us in.
    let repository = repository(&host)?;
    client.check_login(&repository).await.map_err(|error| {
        let mut failure = registry::failed(format!("cannot log in to {host}"), &error);
        if matches!(error.advice(), store::Advice::Unauthorized { .. }) {
            "check the user name and the password; some registries want a token instead of a password"
                .clone_into(&mut failure.hint);
        }
        failure
    })?;
    auth::login(&file, &host, &username, &password, &Helpers::default()).await.map_err(
        |error| {
            registry::failed(format!("cannot store the credentials in {}", file.display()), &error)
        },
    )?;
    output::print(format_args!("logged in to {} as {username}", output::bold(&host)));
    output::print(format_args!("  stored in {}", file.display()));
    Ok(())
}

/// Forgets credentials, wherever they would be found.
pub(crate) async fn logout(request: &Logout, settings: &Settings) -> Outcome {
    let host = host(&request.host)?;
    let files = registry::auth_files(request.auth_file.as_deref(), settings);
    let mut known = false;
    for file in files.iter().filter(|file| file.exists()) {
        known |= auth::logout(file, &host, &Helpers::default()).await.map_err(|error| {
            Failure::new(
                format!("cannot change {}", file.display()),
                "repair or remove the file; credentials may still be in it",
            )
            .because(&error)
        })?;
    }
    let words = if known { "logged out of" } else { "there were no credentials for" };
    output::print(format_args!("{words} {host}"));
    Ok(())
}

fn host(text: &str) -> Outcome<String> {
    let bare = text.trim_start_matches("https://").trim_start_matches("http://");
    let bare = bare.trim_end_matches('/').trim_end_matches("/v2").trim_end_matches("/v1");
    repository(bare).map(|repository| repository.registry().to_owned())
}

fn repository(host: &str) -> Outcome<Repository> {
    // A name without a dot is a host here, whatever it would be in a reference.
    let text = format!("{host}/apron/login");
    let parsed = Repository::parse(&text, &Rules::weak());
    match parsed {
        Ok(repository) if repository.path() == "apron/login" => Ok(repository),
        _ => Err(Failure::new(
            format!("`{host}` is not a registry"),
            "give a host and perhaps a port, for example registry.example.org or localhost:5000",
        )),
    }
}

fn auth_file(explicit: Option<&Path>, settings: &Settings) -> Outcome<PathBuf> {
    let file = explicit.map(Path::to_owned).or_else(|| settings.auth_file_for_login.clone());
    file.ok_or_else(|| {
        Failure::new(
            "there is no place to keep credentials: HOME and DOCKER_CONFIG are not set",
            "name a file with --auth-file",
        )
    })
}

fn credentials(request: &Login, host: &str) -> Outcome<(String, String)> {
    let terminal = std::io::stdin().is_terminal();
    let username = match &request.username {
        Some(username) => username.clone(),
        None if terminal => ask(&format!("user name for {host}: "))?,
        None => {
            return Err(Failure::new(
                "the user name is missing, and there is nobody to ask",
                "give it with --username, and the password with --password-stdin",
            ));
        }
    };
    let password = match &request.password {
        Some(password) => password.clone(),
        None if request.password_stdin || !terminal => read_line()?,
        None => rpassword::prompt_password(format!("password for {username}@{host}: "))
            .map_err(|error| Failure::file(&error))?,
    };
    if password.is_empty() {
        return Err(Failure::new(
            "the password is empty",
            "give it on standard input: echo \"$TOKEN\" | apron login --username USER --password-stdin HOST",
        ));
    }
    Ok((username, password))
}

/// Asks at a terminal.
pub(super) fn ask(question: &str) -> Outcome<String> {
    output::say_always(question);
    read_line()
}

fn read_line() -> Outcome<String> {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).map_err(|error| Failure::file(&error))?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
